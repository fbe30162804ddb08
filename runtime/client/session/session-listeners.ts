/** The listeners of a client session: its channel, and its streams. On its JS thread. */

/** Notified when call slots become free and when the session ends. */
export interface ClientSessionListener {
  onCallDone(): void;
  /**
   * The session is broken and takes no more calls. Called once, before any caller is notified, since callers
   * may begin another call at once. `onSessionDown` follows.
   */
  onSessionLost(): void;
  onSessionDown(reason: string): void;
  /** The session is lost: resolves soon with the server's reason. Undefined when the server gives none. */
  lastWords(): Promise<string | undefined> | undefined;
  /** `consecutiveErrorsMax` consecutive errors have been received. */
  onConsecutiveErrors(): void;
  /** Calls end at their deadlines, and nothing comes from the server. May be called again and again. */
  onSilence(): void;
  /**
   * The server takes no more calls on this session, while earlier ones are in flight. May be called more than
   * once.
   */
  onRejected(): void;
}

/** Receives the events of streams and their parts, whose call slots follow those of unary calls. */
export interface PartEvents {
  onSettled(at: number, call: number): void;
  /** `reason`, `processed` and `held` are those of the event; `why` is the reason of a lost session. */
  onFailed(call: number, reason: number, processed: number, held: number, why: string): void;
  onPartWaits(call: number): void;
  onReleased(call: number): void;
  /** `batch` is the batch of the event. */
  onDown(reason: string, batch: number): void;
}
