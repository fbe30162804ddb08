/**
 * The streams of one client session: the table of the call slots that follow the slots of unary calls. Each
 * stream always has one slot for its OPEN and one slot for a part in each direction. The remaining slots are
 * for streams that need more. A connection of a channel owns this object and uses it on its JS thread.
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

/** The value of `processed` for streams that no handler has seen. */
const untouched = 0;

/** The connection that owns the streams. */
export interface ClientStreamsListener {
  /** The property `unserved` of ClientSession. */
  readonly unserved: boolean;
  /**
   * Runs when a stream is about to be opened. `onStreamUnopened` follows when the stream was not opened after
   * all.
   */
  onStreamOpening(): void;
  onStreamUnopened(): void;
  /** Receives the event of the answer when the server has ended a stream that was not cancelled. */
  onStreamAnswer(status: number, at: number): void;
  /** Runs when a stream has ended. Another stream may be opened then, and send slots may be free. */
  onStreamDone(): void;
  /** Runs when the session was lost. */
  lost(): void;
  /** Runs when the server accepts no more calls on this session. */
  onRejected(): void;
}

/**
 * Result of `open` and `sendPart` when no slot is free or the session is gone. The stream will be notified
 * later. Other negative results are a negated Reason.
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
   * The first slot of streams. The slots of OPENs come first, and are separate from the slots of parts. A
   * part exposes memory, so its slot may stay occupied until the server releases it. An OPEN exposes no
   * memory, and never has to wait for such a slot.
   */
  readonly #base: number;
  readonly #streamsMax: number;
  readonly #freeOpens: number[];
  readonly #freeParts: number[];
  /** Number of free slots, besides the slots that each stream always has. */
  #spare: number;
  readonly #stream: (StreamRow | undefined)[];
  readonly #kind: Uint8Array;
  readonly #sequence: Uint32Array;
  /** The batch of events in or after which each OPEN was submitted. */
  readonly #batch: Int32Array;
  /** Bytes of large messages in flight. */
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

  /** Number of open streams. */
  get size(): number {
    return this.#open.size;
  }

  /** Limit of open streams. */
  get max(): number {
    return this.#streamsMax;
  }

  /** True when the server has refused the connection after the handshake and has run none of its calls. */
  get rejected(): boolean {
    return this.#listener.unserved;
  }

  get full(): boolean {
    return this.#freeOpens.length === 0;
  }

  /**
   * Returns whether a message and `metadataBytes` bytes of metadata certainly fit into one SEND. Throws the
   * errors of the message's encoder.
   */
  fits(type: MessageType<unknown, unknown>, message: unknown, metadataBytes: number): boolean {
    measure.reset(nothing);
    return type.bound(message, measure) + metadataBytes <= this.target.eagerBytes && measure.planned === 0;
  }

  /** Returns a number for a new stream, or 0 when no slot is free. */
  nextNumber(): number {
    if (this.full) return 0;
    do this.#number = this.#number === numberMax ? 1 : this.#number + 1;
    while (this.#open.has(this.#number));
    return this.#number;
  }

  /**
   * Sends the OPEN of a stream. The stream is in the table from now on, except when the result is negative
   * (see `submit`).
   */
  open(
    stream: StreamRow,
    timeoutUs: number,
    type: MessageType<unknown, unknown>,
    message: unknown,
    metadata: Uint8Array,
  ): number {
    // The slot is taken before the message is encoded, because a getter of the message may open a stream
    // itself.
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
      // The stream is recorded before the OPEN is sent, so that a sent frame is not forgotten if the
      // application's stack is exhausted.
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
   * Sends a part. Returns 0, `notNow`, or a negated Reason. Throws the errors of the message's encoder;
   * nothing has been sent then.
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
      // Cancelled parts that the server has not released yet occupy all slots.
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
      // The OPEN of the stream is in flight and fails with the session.
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
   * Cancels a stream at the server, and revokes the application's memory. The server answers all other parts
   * in flight when it learns of the cancellation. When the server has not answered these parts in time, `all`
   * is set, and they are cancelled, too.
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

  /** Runs when the server's response ends a stream. */
  onAnswer(status: number, at: number): void {
    this.#listener.onStreamAnswer(status, at);
  }

  /** Runs when a server that is shutting down has rejected a stream. */
  onRejected(): void {
    this.#listener.onRejected();
  }

  /** Removes a stream that has ended or will be opened again. No frame of the stream is in flight. */
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

  /** Fetches the waiting message of this part. */
  want(call: number): void {
    this.context.native.want(this.target.session, call);
  }

  /** Drops the waiting message. The message exposes no memory, so nothing is pending release. */
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
    // Requests that were made while this batch of events was being handled are still staged here and will not
    // be sent, as in ClientSession.
    for (const [row, stream] of this.#stream.entries()) {
      if (stream === undefined) continue;
      const staged = this.#listener.unserved || this.#batch[row] === batch;
      const sent = staged ? untouched : 1;
      if (this.#free(row, stream) === PartKind.open) stream.onOpenFailed(Reason.sessionLost, sent, reason);
      else stream.onPartFailed(Reason.sessionLost, reason);
    }
  }

  /**
   * Frees an entry. The slot of an OPEN stays reserved until the stream leaves. The slot of a `held` part is
   * free again when RELEASED arrives.
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
