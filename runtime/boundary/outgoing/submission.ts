/**
 * The fields of a submission, by name. Each object that sends repeatedly has its own Submission and fills it
 * in before each `submit`, so that nothing is allocated for a call. It is used on the JS thread of its owner.
 */

/** The properties of a session that the submission path needs. */
export interface Target {
  readonly session: number;
  /**
   * The maximum size of metadata and message together that fits both this side's send slots and the peer's
   * receives.
   */
  readonly eagerBytes: number;
  /**
   * The maximum size of metadata and message together for a message that is sent in segments. The value is 0
   * when no message is sent in segments.
   */
  readonly segmentedBytes?: number;
  /** Largest message that the peer accepts. */
  readonly messageMaxBytes: number;
  /**
   * The side of the connection on which the peer is, for error texts. Undefined means the server to which a
   * request is sent.
   */
  readonly peer?: 'client' | 'server';
  /**
   * A message up to this size is copied to the arena when some of its values lie in memory of the
   * application. A larger message is sent in place. The value is 0 when no message is copied.
   */
  readonly copiedBytes?: number;
  /**
   * The limit `copiedBytes` for a message with a buffer that no earlier message has used and that the device
   * would have to register.
   */
  readonly newCopiedBytes?: number;
  /** Whether the peer takes messages as aligned messages (docs/wire/frames.md §2.4). */
  readonly aligned?: boolean;
  /**
   * True when the session is broken or down. Nothing is submitted for a session that has ended, because no
   * event would report the end.
   */
  gone?: boolean;
}

export class Submission {
  /** A value of SubOp. */
  readonly op: number;
  readonly target: Target;
  /** The call slot. For a response, the handle of its request. */
  call = 0;
  /** The method's id, as a signed 32-bit number. For a response, its status. */
  method = 0;
  /** Time limit; 0 for none. */
  timeoutUs = 0;
  /** Reset to undefined after each `submit`, because the metadata must not outlive its call. */
  metadata: Uint8Array | undefined;
  /**
   * Arena block for the response, 0 for none. With `replyBufferOnly`, a response that does not fit the buffer
   * is refused.
   */
  replyBuffer = 0;
  replyBufferOnly = false;
  /** The use of arena memory for a message that fits no slot. 0 means the default of `op`. */
  use = 0;

  constructor(op: number, target: Target) {
    this.op = op;
    this.target = target;
  }
}
