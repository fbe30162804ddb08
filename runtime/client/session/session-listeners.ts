/**
 * Whom a client session tells of what happens to it and its calls: its channel, and its streams. On its JS
 * thread.
 */

/** Told about what frees call slots and about the end. */
export interface ClientSessionListener {
  onCallDone(): void;
  /**
   * The session is broken: it takes no more calls. Comes once, and before any caller is told, since callers
   * may begin another call at once. `onSessionDown` follows.
   */
  onSessionLost(): void;
  onSessionDown(reason: string): void;
  /** The session is lost: what the server says of that, once and soon. Undefined when it says no more. */
  lastWords(): Promise<string | undefined> | undefined;
  /** `strikesMax` bad answers have come in a row. */
  onStrikes(): void;
  /**
   * The server takes no more calls on this session, though others that it has are under way. May come more
   * than once.
   */
  onTurnedAway(): void;
}

/**
 * Gets the events of calls that are not the session's own: streams and their parts, behind its call slots.
 */
export interface PartEvents {
  onSettled(at: number, call: number): void;
  /** `reason`, `processed` and `held`: as the event has them; `why`: of a session that is lost. */
  onFailed(call: number, reason: number, processed: number, held: number, why: string): void;
  onPartWaits(call: number): void;
  onReleased(call: number): void;
  /** `batch`: of the event that has said so. */
  onDown(reason: string, batch: number): void;
}
