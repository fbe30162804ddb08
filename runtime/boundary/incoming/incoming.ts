/**
 * Takes a message out of the place that an event names: a receive slot, or the memory of messages that came
 * in segments, where everything is copied out since it is valid during the callback only, or an arena block,
 * of which large `bytes` fields become views. Owned by a session.
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
   * Of the window of the session's receives that was read first. Made with the session, though most never
   * need it: with a thousand sessions that had none V8 promoted a quarter of all garbage in two of five runs,
   * which took half of the calls/s.
   */
  readonly #first: Source = copiedSource();
  /** By window, of those that have been read (`receiveWindow`). */
  readonly #windows: (Source | undefined)[] = [];
  readonly #answers: AnswerMemory | undefined;

  /** `answers`: what says which of them are lent; without it, each large message is. */
  constructor({ native, receiveMemory }: FabricContext, session: number, answers?: AnswerMemory) {
    this.#native = native;
    this.#events = native.events;
    this.#memory = receiveMemory;
    this.#session = session;
    this.#answers = answers;
  }

  /** Where the event at `at` has its receive slot: its metadata, and its message unless that has a region. */
  slotOf(at: number): Source {
    const slot = this.#events[at + Ev.receiveSlot]!;
    if (slot > shortMessageSlots) return this.#memory.short;
    return this.#windows[receiveWindow(slot - 1)] ?? this.#open(slot - 1);
  }

  /** `slot`: -1 in an event that has none, whose message is empty. */
  #open(slot: number): Source {
    if (slot < 0) return this.#first;
    const window = receiveWindow(slot);
    const source = this.#windows.length === 0 ? this.#first : copiedSource();
    source.reset(new Uint8Array(this.#native.receiveWindow(this.#session, slot)));
    // Filled up, since V8 reads an array with holes more slowly.
    while (this.#windows.length < window) this.#windows.push(undefined);
    this.#windows[window] = source;
    return source;
  }

  /**
   * The message of the event at `at`. Throws CodecError. `into`: the lease that it has been written into, or
   * else is copied into. `copy`: nothing of it stays in the arena.
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

  /** The text of an error response. */
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

  /** Gives back what the event brought, unread. */
  discard(at: number): void {
    const region = this.#events[at + Ev.region]!;
    if (region > 0) this.#native.releaseBlock(region);
  }

  /** A copy of the event's metadata, undefined for none, a text for why it is malformed. */
  metadataBytes(at: number, response = false): Uint8Array | string | undefined {
    const bytes = this.#events[at + Ev.metadataBytes]!;
    if (bytes === 0) return undefined;
    const start = this.#metadataAt(at);
    const copy = copyMetadata(this.slotOf(at).bytes, start, start + bytes);
    if (typeof copy === 'string') return copy;
    const why = metadataFault(copy, 0, bytes, response);
    return why === '' ? copy : why;
  }

  /** Header and trailer of a response; undefined for none or malformed. */
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
        // The caller's lease holds the block already, so the reference that came with the event is one too
        // many.
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
