/**
 * The fields of a submission, by name. Each object that sends repeatedly has its own Submission and fills it
 * in before each `submit`, so that nothing is allocated for a call. On its JS thread.
 */

/** The properties of a session that the submission path needs. */
export interface Target {
  readonly session: number;
  /** Size of metadata and message together that fits both this side's send slots and the peer's receives. */
  readonly eagerBytes: number;
  /** The same limit for a message that is sent in segments; 0 when none is. */
  readonly segmentedBytes?: number;
  /** Largest message that the peer accepts. */
  readonly messageMaxBytes: number;
  /** Which side of the connection the peer is, for errors. Without: the server of a request's sender. */
  readonly peer?: 'client' | 'server';
  /**
   * A message of up to this size is copied to the arena when values of it lie in memory of the application; a
   * larger one is sent in place. 0 when none is copied.
   */
  readonly copiedBytes?: number;
  /**
   * The same for a message with a buffer that no message has used before and that the device would have to
   * register.
   */
  readonly newCopiedBytes?: number;
  /** The peer takes messages as aligned messages (docs/wire/frames.md §2.4). */
  readonly aligned?: boolean;
  /**
   * True when the session is broken or down: nothing is submitted for it, since no event would report the
   * end.
   */
  gone?: boolean;
}

export class Submission {
  /** SubOp. */
  readonly op: number;
  readonly target: Target;
  /** The call slot; for a response, the handle of its request. */
  call = 0;
  /** The method's id, as a signed 32-bit number; for a response, its status. */
  method = 0;
  /** Time limit; 0 for none. */
  timeoutUs = 0;
  /** Reset to undefined after each `submit`, since it must not outlive its call. */
  metadata: Uint8Array | undefined;
  /**
   * Arena block for the response, 0 for none. With `replyBufferOnly`, a response that does not fit it is
   * refused.
   */
  replyBuffer = 0;
  replyBufferOnly = false;
  /** The use of arena memory for a message that fits no slot; 0 for the default of `op`. */
  use = 0;

  constructor(op: number, target: Target) {
    this.op = op;
    this.target = target;
  }
}
