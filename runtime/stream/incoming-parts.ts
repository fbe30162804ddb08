/**
 * Decodes parts on arrival: part header, metadata and messages. The streams of a session own this object and
 * use it on the JS thread of the session. Its results belong to the caller and never refer to the receive
 * slab.
 */

import type { FabricContext } from '../boundary/fabric-context.ts';
import { Incoming } from '../boundary/incoming/incoming.ts';
import { CodecError } from '../codec/error.ts';
import type { MessageType } from '../codec/types.ts';
import { decodeResponseMetadata, metadataFault, type ResponseMetadata } from '../core/metadata-wire.ts';
import { Ev, receiveSlab } from '../native/native.ts';
import { PartHeader, PartKind, packedLengthBytes, partHeaderBytes } from './part-header.ts';
import { type CopiedMessage, type Reader, type StreamMemory, streamMemory } from './stream-memory.ts';
import type { ReceivedPart } from './stream-reader.ts';

const noMessages: readonly unknown[] = [];

export class IncomingParts {
  /** Header of the part that was last read by `read`. */
  readonly header: PartHeader = new PartHeader();
  readonly whole: Incoming;
  /** The last message of `messages` or `answer`, if it was copied out of the arena. */
  copied: CopiedMessage | undefined;

  readonly #events: Int32Array;
  readonly #memory: StreamMemory;

  constructor(context: FabricContext, session: number, reader: Reader) {
    this.#events = context.native.events;
    this.whole = new Incoming(context, session);
    this.#memory = streamMemory(context, reader);
  }

  /**
   * Reads the header of the part at `at`. Returns '' on success, or the reason why the part has no valid
   * header.
   */
  read(at: number): string {
    const { bytes } = this.whole.slotOf(at);
    return this.header.read(bytes, this.#metadataAt(at), this.#events[at + Ev.metadataBytes]!);
  }

  /**
   * Returns a copy of the metadata entries after the header, undefined when there are no entries, or a text
   * that says why they are malformed.
   */
  entries(at: number, response = false): Uint8Array | string | undefined {
    const length = this.#events[at + Ev.metadataBytes]!;
    if (length <= partHeaderBytes) return undefined;
    const start = this.#metadataAt(at) + partHeaderBytes;
    const end = start - partHeaderBytes + length;
    const { bytes } = this.whole.slotOf(at);
    const why = metadataFault(bytes, start, end, response);
    return why === '' ? bytes.slice(start, end) : why;
  }

  /** Returns header and trailer of a response, or undefined when they are missing or malformed. */
  responseMetadata(at: number): ResponseMetadata | undefined {
    const bytes = this.entries(at, true);
    return bytes instanceof Uint8Array ? decodeResponseMetadata(bytes, 0, bytes.byteLength) : undefined;
  }

  /**
   * Decodes the response to PULL `sequence`. Throws when the response is invalid; its memory has then been
   * released.
   */
  answer(at: number, sequence: number, type: MessageType<unknown, never>): ReceivedPart {
    const { header } = this;
    let why = this.read(at);
    if (why === '' && (header.kind !== PartKind.pull || header.sequence !== sequence)) {
      why = 'a part that was not asked for';
    }
    if (why !== '') {
      this.whole.discard(at);
      throw new Error(why);
    }
    return { messages: this.messages(at, type), last: header.last, token: 0, copied: this.copied };
  }

  /**
   * Decodes the messages of the part whose header was read last. Throws CodecError when a message is invalid;
   * the part's memory has then been released.
   */
  messages(at: number, type: MessageType<unknown, never>): readonly unknown[] {
    const { count, packed } = this.header;
    this.copied = undefined;
    if (packed) return this.#unpack(at, type, count);
    if (count === 1) return [this.#one(at, type)];
    this.whole.discard(at);
    if (this.#events[at + Ev.messageBytes] !== 0)
      throw new CodecError(type.typeName, 'bytes in a part without messages');
    return noMessages;
  }

  #one(at: number, type: MessageType<unknown, never>): unknown {
    const inArena = this.#events[at + Ev.region]! > 0;
    const copied = inArena ? this.#memory.copy(this.#events[at + Ev.messageBytes]!) : undefined;
    try {
      const message = this.whole.message(at, type, undefined, copied !== undefined);
      this.copied = copied;
      return message;
    } finally {
      if (this.copied === undefined) copied?.forget();
    }
  }

  #unpack(at: number, type: MessageType<unknown, never>, count: number): readonly unknown[] {
    const events = this.#events;
    if (events[at + Ev.region]! !== receiveSlab) {
      this.whole.discard(at);
      throw new CodecError(type.typeName, 'packed messages are larger than a slot');
    }
    const slab = this.whole.slotOf(at);
    const { bytes } = slab;
    let from = events[at + Ev.offset]! + events[at + Ev.metadataBytes]!;
    const end = from + events[at + Ev.messageBytes]!;
    const messages = new Array<unknown>(count);
    for (let i = 0; i < count; ++i) {
      if (end - from < packedLengthBytes) throw new CodecError(type.typeName, 'packed messages are cut off');
      const length = bytes[from]! | (bytes[from + 1]! << 8);
      from += packedLengthBytes;
      if (length > end - from) throw new CodecError(type.typeName, 'a packed message is cut off');
      messages[i] = type.decodeFrom(slab, from, from + length);
      from += length;
    }
    if (from !== end) throw new CodecError(type.typeName, 'bytes behind the packed messages');
    return messages;
  }

  #metadataAt(at: number): number {
    return this.#events[at + Ev.metadataOffset]!;
  }
}
