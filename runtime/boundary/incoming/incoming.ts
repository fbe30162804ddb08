/**
 * Decodes a message from the memory that its event names. The bytes of a receive slot, and of a message that
 * came in segments, are valid only during the callback. Therefore everything is copied out of them. In an
 * arena block, large `bytes` fields become views. A session owns it.
 */
import { CodecError } from '../../codec/error.ts';
import { AlignedMessage } from '../../codec/memory/aligned-message.ts';
import type { Source } from '../../codec/memory/source.ts';
import type { MessageType } from '../../codec/types.ts';
import { BlockLease, setLease } from '../../core/lease.ts';
import {
  copyMetadata,
  decodeResponseMetadata,
  metadataFault,
  type ResponseMetadata,
} from '../../core/metadata-wire.ts';
import { leaseBytes } from '../../limits.ts';
import {
  Ev,
  type NativeContext,
  reassembledMessage,
  receiveWindow,
  shortMessageSlots,
} from '../../native/native.ts';
import type { FabricContext } from '../fabric-context.ts';
import { blockMemory } from '../outgoing/block-stamps.ts';
import type { AnswerMemory } from './answer-memory.ts';
import { copiedSource, type ReceiveMemory } from './receive-memory.ts';
import { copyValue } from './value-memory.ts';

const nothing = new Uint8Array(0);

export class Incoming {
  readonly #native: NativeContext;
  readonly #events: Int32Array;
  readonly #memory: ReceiveMemory;
  readonly #session: number;
  /**
   * Source of the receive window that was read first. It is created with the session although most sessions
   * never need it. When a thousand sessions were created without it, V8 promoted a quarter of all garbage in
   * two of five runs, which halved the calls/s.
   */
  readonly #first: Source = copiedSource();
  /** Sources by window (`receiveWindow`), for windows that have been read. */
  readonly #windows: (Source | undefined)[] = [];
  readonly #answers: AnswerMemory | undefined;

  /** `answers` decides which responses are leased. When it is undefined, every large message is leased. */
  constructor({ native, receiveMemory }: FabricContext, session: number, answers?: AnswerMemory) {
    this.#native = native;
    this.#events = native.events;
    this.#memory = receiveMemory;
    this.#session = session;
    this.#answers = answers;
  }

  /**
   * Returns the source of the receive slot of the event at `at`. The slot contains the metadata. It also
   * contains the message unless the event names a region.
   */
  slotOf(at: number): Source {
    const slot = this.#events[at + Ev.receiveSlot]!;
    if (slot > shortMessageSlots) return this.#memory.short;
    return this.#windows[receiveWindow(slot - 1)] ?? this.#open(slot - 1);
  }

  /**
   * Returns a source that reads the message in a receive slot. `slot` is -1 for an event without a receive
   * slot, whose message is empty.
   */
  #open(slot: number): Source {
    if (slot < 0) return this.#first;
    const window = receiveWindow(slot);
    const source = this.#windows.length === 0 ? this.#first : copiedSource();
    source.reset(new Uint8Array(this.#native.receiveWindow(this.#session, slot)));
    // Fill the array, because V8 reads arrays with holes more slowly.
    while (this.#windows.length < window) this.#windows.push(undefined);
    this.#windows[window] = source;
    return source;
  }

  /**
   * Decodes the message of the event at `at`. Throws CodecError. If `into` is given, the peer has either
   * written the message into that lease, or the message is copied into it. With `copy`, no part of the
   * message stays in the arena.
   */
  message<T>(at: number, type: MessageType<T, never>, into: BlockLease | undefined, copy = false): T {
    const events = this.#events;
    const region = events[at + Ev.region]!;
    const bytes = events[at + Ev.messageBytes]!;
    if (region > 0) return this.#inBlock(region, events[at + Ev.aligned] === 1, bytes, type, into, copy);
    const whole = region === reassembledMessage;
    const start = events[at + Ev.offset]! + (whole ? 0 : events[at + Ev.metadataBytes]!);
    const slab = whole ? this.#memory.whole : this.slotOf(at);
    if (into === undefined || into.released) return type.decodeFrom(slab, start, start + bytes);
    try {
      slab.copyOut = into.fill();
      const message = type.decodeFrom(slab, start, start + bytes);
      if (into.filled) setLease(message as object, into);
      return message;
    } finally {
      slab.copyOut = copyValue;
    }
  }

  /** Returns the text of an error response. */
  text(at: number): string {
    const events = this.#events;
    const region = events[at + Ev.region]!;
    const bytes = events[at + Ev.messageBytes]!;
    if (region > 0) {
      this.#native.releaseBlock(region);
      return 'an error whose text is too long';
    }
    const start = events[at + Ev.offset]! + events[at + Ev.metadataBytes]!;
    return new TextDecoder().decode(this.slotOf(at).bytes.subarray(start, start + bytes));
  }

  /** Releases the memory of the event without reading it. */
  discard(at: number): void {
    const region = this.#events[at + Ev.region]!;
    if (region > 0) this.#native.releaseBlock(region);
  }

  /**
   * Returns a copy of the event's metadata, undefined when the event has none, or a text that says why the
   * metadata is malformed.
   */
  metadataBytes(at: number, response = false): Uint8Array | string | undefined {
    const bytes = this.#events[at + Ev.metadataBytes]!;
    if (bytes === 0) return undefined;
    const start = this.#metadataAt(at);
    const copy = copyMetadata(this.slotOf(at).bytes, start, start + bytes);
    if (typeof copy === 'string') return copy;
    const why = metadataFault(copy, 0, bytes, response);
    return why === '' ? copy : why;
  }

  /**
   * Returns header and trailer of a response. Returns undefined when the metadata is missing or malformed.
   */
  responseMetadata(at: number): ResponseMetadata | undefined {
    const bytes = this.metadataBytes(at, true);
    return bytes instanceof Uint8Array ? decodeResponseMetadata(bytes, 0, bytes.byteLength) : undefined;
  }

  #metadataAt(at: number): number {
    return this.#events[at + Ev.metadataOffset]!;
  }

  #inBlock<T>(
    block: number,
    isAligned: boolean,
    bytes: number,
    type: MessageType<T, never>,
    into: BlockLease | undefined,
    copy: boolean,
  ): T {
    const native = this.#native;
    const { block: source, aligned: gatherEntries } = this.#memory;
    const buffer = blockMemory(native, block);
    const memory = new Uint8Array(buffer, 0, bytes);
    source.reset(memory, native.peersKeepAccess);
    let leased = false;
    const copied = copy || (into === undefined && this.#answers?.copies(bytes) === true);
    source.leaseBytes = copied ? Number.POSITIVE_INFINITY : leaseBytes;
    try {
      const aligned = isAligned ? AlignedMessage.of(memory, gatherEntries, buffer) : undefined;
      if (typeof aligned === 'string') throw new CodecError(type.typeName, aligned, 0);
      if (aligned !== undefined) source.open(aligned);
      const end = aligned?.bytes ?? bytes;
      const message = type.decodeFrom(source, 0, end);
      source.close(end);
      leased = source.leases > 0;
      if (leased && into?.block === block && !into.released) {
        // The caller's lease already holds the block, so the additional reference that came with the event is
        // released.
        leased = false;
        setLease(message as object, into);
      } else if (leased) {
        setLease(message as object, new BlockLease(native, block, buffer, 0, bytes));
      }
      return message;
    } finally {
      source.reset(nothing, false);
      gatherEntries.leave();
      if (!leased) native.releaseBlock(block);
    }
  }
}
