/**
 * The listeners of a client session: its channel and its streams. They are called on the JS thread of the
 * session.
 */

/** The owner of a session, which is notified when call slots become free and when the session ends. */
export interface ClientSessionListener {
  onCallDone(): void;
  /**
   * Runs once when the session is broken and takes no more calls. It is called before any caller is notified,
   * because callers may begin another call at once. `onSessionDown` follows.
   */
  onSessionLost(): void;
  onSessionDown(reason: string): void;
  /**
   * Runs when the session is lost. The returned promise resolves soon with the server's reason. Returns
   * undefined when no reason can come from the server.
   */
  lastWords(): Promise<string | undefined> | undefined;
  /** Runs when `consecutiveErrorsMax` consecutive errors have been received. */
  onConsecutiveErrors(): void;
  /**
   * Runs when calls end at their deadlines and nothing comes from the server. It may be called again and
   * again.
   */
  onSilence(): void;
  /**
   * Runs when the server takes no more calls on this session while earlier calls are in flight. It may be
   * called more than once.
   */
  onRejected(): void;
}

/** Receives the events of streams and their parts. Their call slots follow the call slots of unary calls. */
export interface PartEvents {
  onSettled(at: number, call: number): void;
  /**
   * Runs when native code reports that a call has failed. `reason`, `processed` and `held` come from the
   * event. `why` says why the session was lost.
   */
  onFailed(call: number, reason: number, processed: number, held: number, why: string): void;
  onPartWaits(call: number): void;
  onReleased(call: number): void;
  /** Runs when the session has ended. `batch` is the batch of the event. */
  onDown(reason: string, batch: number): void;
}
