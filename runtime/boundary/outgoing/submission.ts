/**
 * What goes out with a message, by name. Whoever sends again and again has one of its own and fills it in
 * before each `submit`, so that nothing is made for a call. On its JS thread.
 */

/** What the submission path must know of a session. */
export interface Target {
  readonly session: number;
  /** Metadata and message together that both our send slots and the peer's receive slots hold. */
  readonly eagerBytes: number;
  /** The same of a message that goes in segments, when it does not fit that; 0: none does. */
  readonly segmentedBytes?: number;
  /** Largest message that the peer accepts. */
  readonly messageMaxBytes: number;
  /** Which side of the connection the peer is, for errors. Without: the server of a request's sender. */
  readonly peer?: 'client' | 'server';
  /**
   * A message of up to this many bytes is copied to the arena when values of it lie in memory of the
   * application; a larger one goes from where it is. 0: none is copied.
   */
  readonly copiedBytes?: number;
  /**
   * The same for a message with a buffer that no message has had before, and which the device would have to
   * register.
   */
  readonly newCopiedBytes?: number;
  /** The peer takes messages as aligned messages (docs/wire/frames.md §2.4). */
  readonly aligned?: boolean;
  /**
   * The session is broken or down: nothing is submitted for it any more, since no event would tell its end.
   */
  gone?: boolean;
}

export class Submission {
  /** SubOp. */
  readonly op: number;
  readonly target: Target;
  /** The call slot; of an answer, the handle of its request. */
  call = 0;
  /** The method's id, 32 bits with a sign, or what `op` has in its place: the status of an answer. */
  method = 0;
  /** 0: none. */
  timeoutUs = 0;
  /** Undefined again after each `submit`: it must not outlive its call. */
  metadata: Uint8Array | undefined;
  /** Block of the arena for the response, 0 for none; `replyBufferOnly`: what does not fit it is refused. */
  replyBuffer = 0;
  replyBufferOnly = false;
  /** Use: of memory for a message that fits no slot, 0 for what `op` says. */
  use = 0;

  constructor(op: number, target: Target) {
    this.op = op;
    this.target = target;
  }
}
