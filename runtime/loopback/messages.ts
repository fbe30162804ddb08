/**
 * Passes messages from one end of a loopback session to the other: each submission of JS becomes an event of
 * the other end. LoopbackContext uses this file on its JS thread.
 */
import {
  Ctl,
  EvKind,
  type NativeContext,
  noStats,
  notRun,
  Reason,
  type Stats,
  Sub,
  SubOp,
  submitAligned,
  submitReplyBufferOnly,
} from '../native/native.ts';
import type { Blocks } from './blocks.ts';
import { eventOf, failedEvent, type LoopbackEvent, nowhere, type Place } from './events.ts';
import { copySegments, extentOf, segmentsIn } from './gather.ts';
import type { SendSlots } from './send-slots.ts';
import { type LoopbackCall, type LoopbackSession, Processed } from './session.ts';
import type { SessionTable } from './session-table.ts';

const resourceExhausted = 8;
/**
 * The positions of the message count and of the kind in the header of a part (runtime/stream/part-header.ts).
 */
const partCountAt = 8;
const partKindAt = 10;
const partOpens = 1;
/** Handles and tokens are positive int32 words. */
const numbersMax = 0x7fff_ffff;

/** The parts of the context that this class uses. */
export interface MessageHost
  extends Pick<NativeContext, 'control' | 'submissions' | 'gatherEntries' | 'scratch' | 'arenaBytes'> {
  readonly slots: SendSlots;
  readonly blocks: Blocks;
  readonly sessions: SessionTable;
  emit(event: LoopbackEvent): void;
  /** Frees the memory of a message that will not be delivered. */
  drop(place: Place): void;
}

/** The properties of a request, apart from its message. */
type Request = Pick<LoopbackCall, 'slot' | 'confirmed' | 'replyBuffer' | 'replyBufferOnly'>;

/** The properties that both kinds of submissions have. */
interface Submitted {
  readonly op: number;
  /** The call slot, or the handle of the call that is answered. */
  readonly call: number;
  /** The method, or the status of an answer. */
  readonly method: number;
  readonly timeoutUs: number;
  readonly place: Place;
}

export class Messages {
  readonly stats: Stats = { ...noStats };

  readonly #host: MessageHost;
  #lastHandle = 0;
  #lastToken = 0;

  constructor(host: MessageHost) {
    this.#host = host;
  }

  /** Takes all submissions that JS has staged. */
  flush(): void {
    const { control } = this.#host;
    const end = control[Ctl.staged]! * Sub.words;
    control[Ctl.staged] = 0;
    for (let at = 0; at < end; at += Sub.words) this.#submit(at);
  }

  #submit(at: number): void {
    const { submissions: words, sessions } = this.#host;
    const op = words[at + Sub.op]!;
    const call = words[at + Sub.call]!;
    const place = {
      ...nowhere,
      slot: words[at + Sub.slot]!,
      metadataBytes: words[at + Sub.metadataBytes]!,
      messageBytes: words[at + Sub.messageBytes]!,
    };
    const own = sessions.find(words[at + Sub.session]!);
    ++this.stats.eagerSends;
    if (op === SubOp.response) {
      this.#answer(own, call, words[at + Sub.status]!, place);
      return;
    }
    const server = own?.other;
    if (own === undefined || server === undefined) {
      this.#host.drop(place);
      if (own !== undefined) this.#host.emit(failedEvent(own.number, call, Reason.sessionLost, Processed.no));
      return;
    }
    const method = words[at + Sub.method]!;
    const timeoutUs = words[at + Sub.timeoutUs]!;
    const request = { slot: call, confirmed: false, replyBuffer: 0, replyBufferOnly: false };
    this.#begin(own, server, { op, call, method, timeoutUs, place }, request);
  }

  /** Implements NativeContext.submitBulk(). Copies all segments at once. */
  submitBulk(
    session: number,
    submitted: Omit<Submitted, 'place'> & Pick<Place, 'slot' | 'metadataBytes'>,
    gatherEntries: readonly Uint8Array[] | number,
    keys: readonly number[] | number,
    replyBuffer: number,
    flags: number,
  ): number {
    const { sessions, blocks } = this.#host;
    const own = sessions.find(session);
    const peer = own?.other;
    if (own === undefined || peer === undefined) return -Reason.sessionLost;
    const { op, call, slot, metadataBytes } = submitted;
    const segments =
      typeof gatherEntries === 'number' ? segmentsIn(this.#host, blocks, gatherEntries) : gatherEntries;
    // An empty segment is a buffer that the application has transferred.
    if (segments.some(({ byteLength }) => byteLength === 0)) return -Reason.detached;
    const aligned = (flags & submitAligned) !== 0;
    const answered = op === SubOp.response ? own.calls.get(call) : undefined;
    const messageBytes = extentOf(segments, aligned);
    const block = messageBytes === 0 ? 0 : this.#blockFor(answered, messageBytes);
    if (block < 0) return block;
    if (block !== 0) copySegments(segments, aligned, blocks.memoryOf(block));
    if (typeof keys === 'number' && keys !== 0) blocks.release(keys);
    const token = this.#nextToken();
    this.#host.emit(eventOf(EvKind.sent, session, { call: token }));
    const place = { slot, metadataBytes, block, aligned, messageBytes };
    if (op === SubOp.response) {
      ++this.stats.bulkResponses;
      const isBeyond = answered?.replyBufferOnly === true && block !== 0 && block !== answered.replyBuffer;
      if (isBeyond) this.#refuseBeyondReplyBuffer(own, answered, place);
      else this.#answer(own, call, submitted.method, place);
    } else {
      ++this.stats.bulkRequests;
      const replyBufferOnly = (flags & submitReplyBufferOnly) !== 0;
      this.#begin(
        own,
        peer,
        { ...submitted, place },
        { slot: call, confirmed: true, replyBuffer, replyBufferOnly },
      );
    }
    return token;
  }

  /**
   * Returns the block for an answer: the caller's block if it is large enough, otherwise a new block. Returns
   * a negated Reason when no memory is left.
   */
  #blockFor(answered: LoopbackCall | undefined, bytes: number): number {
    const { blocks, control, arenaBytes } = this.#host;
    const replyBuffer = answered?.replyBuffer ?? 0;
    // The size is 0 if the application has released the block in the meantime.
    if (replyBuffer !== 0 && blocks.sizeOf(replyBuffer) >= bytes) {
      blocks.addReference(replyBuffer);
      return replyBuffer;
    }
    if (bytes <= arenaBytes) return blocks.alloc(bytes);
    control[Ctl.shortBytes] = bytes | 0;
    return -Reason.noMemory;
  }

  #begin(client: LoopbackSession, server: LoopbackSession, submitted: Submitted, request: Request): void {
    const { op, method, timeoutUs: time, place } = submitted;
    const part = op === SubOp.part;
    const counts = !part || this.#host.slots.metadataByte(place, partKindAt) === partOpens;
    if (counts) {
      ++this.stats.calls;
      ++this.stats.requests;
    }
    if (part) this.#countMessages(place);
    this.#lastHandle = (this.#lastHandle % numbersMax) + 1;
    const handle = this.#lastHandle;
    const words = { call: handle, method, place, time, processed: Number(part) };
    const event = eventOf(EvKind.request, server.number, words);
    client.begin({ ...request, handle, counts, request: event, answer: undefined, leaving: false }, server);
  }

  /** Ends the call with this handle. Drops an answer that no client waits for. */
  #answer(server: LoopbackSession | undefined, handle: number, status: number, place: Place): void {
    const call = server?.calls.get(handle);
    const processed = (status & notRun) === 0 ? Processed.yes : Processed.no;
    if (call !== undefined && server!.answer(call, { method: status & ~notRun, place, processed })) {
      if (!call.counts) this.#countMessages(place);
    } else {
      ++this.stats.lateResponses;
      this.#host.drop(place);
    }
  }

  /**
   * Refuses an answer that is too large for the caller's memory, when the caller does not accept other
   * memory.
   */
  #refuseBeyondReplyBuffer(server: LoopbackSession, call: LoopbackCall, place: Place): void {
    this.#host.drop(place);
    const words = { method: resourceExhausted, time: place.messageBytes, processed: Processed.yes };
    server.answer(call, words);
  }

  #countMessages(place: Place): void {
    const { slots } = this.#host;
    const count = slots.metadataByte(place, partCountAt) | (slots.metadataByte(place, partCountAt + 1) << 8);
    this.stats.streamMessagesSent += count;
    this.stats.streamMessagesReceived += count;
  }

  #nextToken(): number {
    this.#lastToken = (this.#lastToken % numbersMax) + 1;
    return this.#lastToken;
  }
}
