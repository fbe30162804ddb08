/**
 * The streams of one client session: the table of the call slots behind those of unary calls. A stream has
 * one slot for itself and one for a part in each direction whenever it wants them; what is left over is for
 * whoever has more to move. Owned by a connection of a channel, on its JS thread.
 */

import type { FabricContext } from '../../boundary/fabric-context.ts';
import { noSlot } from '../../boundary/outgoing/outgoing.ts';
import { Submission, type Target } from '../../boundary/outgoing/submission.ts';
import { Writer } from '../../codec/memory/writer.ts';
import type { MessageType } from '../../codec/types.ts';
import { slotsPerStream } from '../../limits.ts';
import { PendingRelease, Reason, SubOp } from '../../native/native.ts';
import { IncomingParts } from '../../stream/incoming-parts.ts';
import { PartKind, partHeader, pullMethod, pushMethod } from '../../stream/part-header.ts';
import { StalledStreams } from '../../stream/stalled-streams.ts';
import type { PartEvents } from '../session/session-listeners.ts';
import type { StreamRow } from './stream-row.ts';

/** `processed` of what no handler has seen. */
const untouched = 0;

/** The connection. */
export interface ClientStreamsListener {
  /** As ClientSession has it. */
  readonly unserved: boolean;
  /** A stream is about to be opened; or is not after all. */
  onStreamOpening(): void;
  onStreamUnopened(): void;
  /** The server has ended a stream that was not given up. */
  onStreamAnswer(status: number): void;
  /** A stream has left: another may come, and send slots may be free. */
  onStreamDone(): void;
  /** As SessionOwner has it. */
  lost(): void;
  /** The server takes no more calls on this session. */
  onTurnedAway(): void;
}

/**
 * `open`, `sendPart`: there is no slot now, and the stream hears of one; or the session is gone, and the
 * stream hears of that. Other negative results are a Reason, negated.
 */
export const notNow = noSlot;

const numberMax = 0xffff_ffff;
const nothing = new Uint8Array(0);
const measure = new Writer();

export class ClientStreams implements PartEvents {
  readonly context: FabricContext;
  readonly target: Target;
  readonly incoming: IncomingParts;
  readonly stalled: StalledStreams;

  readonly #submission: Submission;
  readonly #listener: ClientStreamsListener;
  /**
   * The first slot. Those of the streams themselves come first: they expose no memory, so nothing ever delays
   * an opening behind its parts.
   */
  readonly #base: number;
  readonly #streamsMax: number;
  readonly #freeOpens: number[];
  readonly #freeParts: number[];
  /** Free slots beyond one for each direction of each stream. */
  #spare: number;
  readonly #stream: (StreamRow | undefined)[];
  readonly #kind: Uint8Array;
  readonly #sequence: Uint32Array;
  /** Batch of events that an OPEN was submitted in or after. */
  readonly #batch: Int32Array;
  /** Of large messages on their way. */
  readonly #bytes: Float64Array;
  readonly #open = new Map<number, StreamRow>();
  #number = 0;

  constructor(
    context: FabricContext,
    target: Target,
    inflightMax: number,
    streamsMax: number,
    listener: ClientStreamsListener,
  ) {
    const slots = slotsPerStream * streamsMax;
    this.context = context;
    this.target = target;
    this.incoming = new IncomingParts(context, target.session, 'client');
    this.#submission = new Submission(SubOp.part, target);
    this.stalled = new StalledStreams(context);
    this.#listener = listener;
    this.#base = inflightMax;
    this.#streamsMax = streamsMax;
    this.#freeOpens = Array.from({ length: streamsMax }, (_, i) => inflightMax + streamsMax - 1 - i);
    this.#freeParts = Array.from({ length: slots - streamsMax }, (_, i) => inflightMax + slots - 1 - i);
    this.#spare = slots - 3 * streamsMax;
    this.#stream = new Array<undefined>(slots).fill(undefined);
    this.#kind = new Uint8Array(slots);
    this.#sequence = new Uint32Array(slots);
    this.#batch = new Int32Array(slots);
    this.#bytes = new Float64Array(slots);
  }

  /** Streams open now. */
  get size(): number {
    return this.#open.size;
  }

  /** Most streams at once. */
  get max(): number {
    return this.#streamsMax;
  }

  /** The server has refused the connection behind its handshake, and run nothing of it. */
  get turnedAway(): boolean {
    return this.#listener.unserved;
  }

  get full(): boolean {
    return this.#freeOpens.length === 0;
  }

  /** Whether a message and so much metadata surely fit one SEND. Throws what the message's encoder throws. */
  fits(type: MessageType<unknown, unknown>, message: unknown, metadataBytes: number): boolean {
    measure.reset(nothing);
    return type.bound(message, measure) + metadataBytes <= this.target.eagerBytes && measure.planned === 0;
  }

  /** A number for a new stream, 0 when there is no slot for one. */
  nextNumber(): number {
    if (this.full) return 0;
    do this.#number = this.#number === numberMax ? 1 : this.#number + 1;
    while (this.#open.has(this.#number));
    return this.#number;
  }

  /**
   * Sends the OPEN of a stream, which is in the table from now on unless the result is negative (as of
   * `submit`).
   */
  open(
    stream: StreamRow,
    timeoutUs: number,
    type: MessageType<unknown, unknown>,
    message: unknown,
    metadata: Uint8Array,
  ): number {
    // Taken before the message is encoded: a getter of that may open a stream itself.
    const call = this.#freeOpens.pop()!;
    const { id, expectedResponseBytes } = stream.method;
    if (expectedResponseBytes !== 0)
      this.context.leases.expectResponse(pullMethod(id), expectedResponseBytes);
    const row = call - this.#base;
    const { outgoing } = this.context;
    let result = -1;
    try {
      const submission = this.#submission;
      submission.call = call;
      submission.method = id | 0;
      submission.timeoutUs = timeoutUs;
      submission.metadata = metadata;
      submission.use = 0;
      // Noted before it is sent: where the stack of the application comes to its end, what has been sent must
      // not be forgotten.
      this.#open.set(stream.number, stream);
      this.#listener.onStreamOpening();
      result = outgoing.submit(submission, type, message);
    } finally {
      if (result < 0) {
        this.#freeOpens.push(call);
        if (this.#open.delete(stream.number)) this.#listener.onStreamUnopened();
      }
    }
    if (result === -Reason.sessionLost) {
      this.#listener.lost();
      return notNow;
    }
    if (result < 0) return result;
    this.#stream[row] = stream;
    this.#kind[row] = PartKind.open;
    this.#batch[row] = this.context.batch;
    stream.call = call;
    return 0;
  }

  /**
   * Sends a part. 0, `notNow`, or a Reason, negated. What the message's encoder throws comes out, and nothing
   * has been sent.
   */
  sendPart(
    stream: StreamRow,
    kind: number,
    sequence: number,
    count: number,
    flags: number,
    type: MessageType<unknown, unknown>,
    message: unknown,
    use = 0,
  ): number {
    const push = kind === PartKind.push;
    const first = (push ? stream.pushes : stream.pulls) === 0;
    if (!first && this.#spare === 0) return notNow;
    const call = this.#freeParts.pop();
    if (call === undefined) {
      // Parts that were given up, and that the server has not let go of, have all of them.
      this.stalled.awaitSlot(stream, 'callSlot');
      return notNow;
    }
    if (!first) --this.#spare;
    const { outgoing } = this.context;
    let result = -1;
    try {
      const submission = this.#submission;
      submission.call = call;
      submission.method = (push ? pushMethod : pullMethod(stream.method.id)) | 0;
      submission.timeoutUs = 0;
      submission.metadata = partHeader(stream.number, sequence, count, kind, flags);
      submission.use = use;
      result = outgoing.submit(submission, type, message);
    } finally {
      if (result < 0) {
        this.#freeParts.push(call);
        if (!first) ++this.#spare;
      }
    }
    if (result < 0) {
      if (result === noSlot) this.stalled.awaitSlot(stream, 'slot');
      // Its OPEN is under way, and fails with the session.
      return result === -Reason.sessionLost ? notNow : result;
    }
    const row = call - this.#base;
    const bytes = result > 0 ? outgoing.bulk.submittedBytes : 0;
    this.#stream[row] = stream;
    this.#kind[row] = kind;
    this.#sequence[row] = sequence;
    this.#bytes[row] = bytes;
    if (push) {
      ++stream.pushes;
      stream.pushedBytes += bytes;
    } else {
      ++stream.pulls;
    }
    this.stalled.moved(stream);
    return 0;
  }

  /**
   * Tells the server that a stream is given up, and takes the application's memory back. Everything else that
   * is on its way is answered by the server when it learns of that; `all`: it has not, so that is given up,
   * too.
   */
  cancel(stream: StreamRow, reason: number, all: boolean): void {
    const { native, outgoing } = this.context;
    outgoing.flush();
    for (const [row, owner] of this.#stream.entries()) {
      if (owner !== stream) continue;
      if (!all && this.#kind[row] !== PartKind.open && this.#bytes[row] === 0) continue;
      native.cancel(this.target.session, this.#base + row, reason);
    }
  }

  /** The server has ended a stream with this. */
  onAnswer(status: number): void {
    this.#listener.onStreamAnswer(status);
  }

  /** A stream has been turned away by a server that is about to go. */
  onTurnedAway(): void {
    this.#listener.onTurnedAway();
  }

  /** The stream is over, or to be made anew, and nothing of it is on its way. */
  leave(stream: StreamRow): void {
    this.#open.delete(stream.number);
    this.stalled.delete(stream);
    this.#freeOpens.push(stream.call);
    this.#listener.onStreamDone();
  }

  onSettled(at: number, call: number): void {
    const row = call - this.#base;
    const stream = this.#stream[row];
    if (stream === undefined) {
      this.incoming.whole.discard(at);
      return;
    }
    const kind = this.#free(row, stream);
    if (kind === PartKind.open) stream.onOpenSettled(at);
    else if (kind === PartKind.push) stream.onPushSettled(at);
    else stream.onPullSettled(at, this.#sequence[row]!);
  }

  onFailed(call: number, reason: number, processed: number, held: number, why: string): void {
    const row = call - this.#base;
    const stream = this.#stream[row];
    if (stream === undefined) return;
    const kind = this.#free(row, stream, (held & PendingRelease.slot) !== 0);
    const known = this.#listener.unserved ? untouched : processed;
    const lost = reason === Reason.sessionLost;
    if (kind === PartKind.open) stream.onOpenFailed(reason, known, lost ? why : '');
    else stream.onPartFailed(reason, lost ? why : '');
  }

  /** The message that this part waits with may come. */
  want(call: number): void {
    this.context.native.want(this.target.session, call);
  }

  /** It never will. It is exposed nowhere, so nothing is held. */
  refuse(call: number): void {
    this.context.native.cancel(this.target.session, call, Reason.cancelled);
  }

  onReleased(call: number): void {
    this.#freeParts.push(call);
    this.stalled.retrySlots();
  }

  onPartWaits(call: number): void {
    const row = call - this.#base;
    this.#stream[row]?.reader.announce(this.#sequence[row]!, call);
  }

  onDown(reason: string, batch: number): void {
    this.stalled.clear();
    // As in ClientSession: what was begun since this batch was made is staged, and is not sent any more.
    for (const [row, stream] of this.#stream.entries()) {
      if (stream === undefined) continue;
      const staged = this.#listener.unserved || this.#batch[row] === batch;
      const sent = staged ? untouched : 1;
      if (this.#free(row, stream) === PartKind.open) stream.onOpenFailed(Reason.sessionLost, sent, reason);
      else stream.onPartFailed(Reason.sessionLost, reason);
    }
  }

  /**
   * Frees a row; the slot of a stream itself stays its own until it leaves, that of a `held` part comes back
   * with RELEASED.
   */
  #free(row: number, stream: StreamRow, held = false): number {
    const kind = this.#kind[row]!;
    this.#stream[row] = undefined;
    if (kind === PartKind.open) return kind;
    if (!held) this.#freeParts.push(this.#base + row);
    let left: number;
    if (kind === PartKind.push) {
      left = --stream.pushes;
      stream.pushedBytes -= this.#bytes[row]!;
    } else {
      left = --stream.pulls;
    }
    if (left > 0) ++this.#spare;
    return kind;
  }
}
