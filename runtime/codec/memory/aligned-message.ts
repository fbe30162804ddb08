/**
 * Received messages in the aligned layout (docs/wire/frames.md §2.4), called aligned messages. The memory
 * begins with a table of segment lengths, and each segment begins on a multiple of 64 bytes, so that large
 * `bytes` values can be used in place. Decoders do not know of the layout. They count positions as if the
 * segments were contiguous. The Source changes its `bytes` when it reaches the next segment. Source uses it;
 * runtime/boundary creates aligned messages from received memory.
 */

import { readWord } from './word.ts';

/** Each segment begins on a multiple of this number of bytes, counted from the start of the memory. */
export const alignmentBytes = 64;

/** Returns the offset at which a segment behind `at` begins. */
export function alignedOffset(at: number): number {
  return Math.ceil(at / alignmentBytes) * alignmentBytes;
}

/** Returns the size of a table with this number of segments, including the gap behind it. */
export function alignedTableBytes(segments: number): number {
  return alignedOffset(4 + 4 * segments);
}

/** Returns the maximum size of the aligned layout of a message of at most `messageBytes`. */
export function alignedBytesMax(messageBytes: number): number {
  return messageBytes + Math.floor(messageBytes / 8) + 4096;
}

/** The reader of an aligned message, implemented by Source. */
export interface SegmentReader {
  readonly bytes: Uint8Array;
  /** End of the visible segment. */
  readonly gapAt: number;
  /** Changes the visible memory. */
  show(bytes: Uint8Array, gapAt: number): void;
}

const noBuffer = new ArrayBuffer(0);
const nothing = new Uint8Array(noBuffer);
/** The size of the table that stays allocated for the next aligned message. */
const lengthsKept = 64;

export class AlignedMessage {
  /** Length of the message without its table and its gaps. */
  bytes = 0;
  #memory: Uint8Array = nothing;
  /**
   * The ArrayBuffer of #memory and the offset in it. They are kept because reading them from a typed array
   * calls into V8 each time.
   */
  #buffer: ArrayBufferLike = noBuffer;
  #offset = 0;
  /**
   * The lengths of the segments, and the number of segments. They are a copy, because a peer with access to
   * the memory may change the table.
   */
  #lengths: Uint32Array = new Uint32Array(3);
  #count = 0;
  /** The segment at which the source reads: its index, its first position, and its offset in the memory. */
  #segment = 0;
  #first = 0;
  #place = 0;

  /**
   * Returns the aligned message in `memory`, or a text that says why it is invalid. The memory begins on a
   * multiple of 64 bytes and ends where the aligned message ends. `aligned` is an unused object that is
   * reused for the message; `buffer` is the ArrayBuffer of the memory.
   */
  static of(
    memory: Uint8Array,
    aligned: AlignedMessage = new AlignedMessage(),
    buffer: ArrayBufferLike = memory.buffer,
  ): AlignedMessage | string {
    return aligned.#open(memory, buffer) ?? aligned;
  }

  /** Releases the memory. */
  leave(): void {
    this.#memory = nothing;
    this.#buffer = noBuffer;
    if (this.#lengths.length > lengthsKept) this.#lengths = new Uint32Array(3);
  }

  #open(memory: Uint8Array, buffer: ArrayBufferLike): string | undefined {
    if (memory.length < 4) return 'an aligned message without its table';
    const count = readWord(memory, 0);
    if (count === 0 || 4 + 4 * count > memory.length) return 'an aligned message that ends in its table';
    if (count > this.#lengths.length) this.#lengths = new Uint32Array(count);
    const lengths = this.#lengths;
    let bytes = 0;
    let end = alignedTableBytes(count);
    for (let i = 0; i < count; i++) {
      const length = readWord(memory, 4 + 4 * i);
      lengths[i] = length;
      bytes += length;
      if (length !== 0) end = alignedOffset(end) + length;
    }
    if (end > memory.length && bytes !== 0) return 'an aligned message that ends in a segment';
    this.#memory = memory;
    this.#buffer = buffer;
    this.#offset = memory.byteOffset;
    this.#count = count;
    this.bytes = bytes;
    return undefined;
  }

  /** Moves the source to the first segment. */
  enter(source: SegmentReader): void {
    this.#segment = 0;
    this.#first = 0;
    this.#place = alignedTableBytes(this.#count);
    this.moveTo(source, 0);
  }

  /**
   * Moves on to the segment that contains position `at`. If `at` lies on a boundary, it moves to the segment
   * that begins there.
   */
  moveTo(source: SegmentReader, at: number): void {
    const lengths = this.#lengths;
    while (this.#segment + 1 < this.#count && at >= this.#first + (lengths[this.#segment] as number))
      this.#step();
    this.#show(source);
  }

  /**
   * Moves back to the segment that contains position `at`. This is needed because the end of a group is
   * searched before the group is read. It moves step by step rather than from the start, because a peer may
   * send many groups behind many segments.
   */
  moveBack(source: SegmentReader, at: number): void {
    if (at >= this.#first) return;
    while (at < this.#first) {
      const length = this.#lengths[--this.#segment] as number;
      this.#first -= length;
      this.#place -= alignedOffset(length);
    }
    this.moveTo(source, at);
  }

  /** Returns a copy of positions [start, end) in new memory. The positions may be in several segments. */
  copy(source: SegmentReader, start: number, end: number): Uint8Array {
    const whole = new Uint8Array(end - start);
    const here = this.#first;
    this.moveBack(source, start);
    for (let at = start; at < end; ) {
      this.moveTo(source, at);
      const stop = Math.min(end, this.#segment + 1 < this.#count ? source.gapAt : end);
      whole.set(source.bytes.subarray(at, stop), at - start);
      at = stop;
    }
    this.moveBack(source, here);
    this.moveTo(source, here);
    return whole;
  }

  #step(): void {
    const length = this.#lengths[this.#segment++] as number;
    this.#first += length;
    this.#place = alignedOffset(this.#place + length);
  }

  /** Sets the source's memory so that positions in the complete message are also valid in this segment. */
  #show(source: SegmentReader): void {
    const last = this.#segment + 1 === this.#count;
    const { length } = this.#memory;
    // Empty segments may lie behind the end of the memory.
    const at = Math.min(this.#place - this.#first, length);
    source.show(
      new Uint8Array(this.#buffer, this.#offset + at, length - at),
      last ? noGap : this.#first + (this.#lengths[this.#segment] as number),
    );
  }
}

/** Value of `Source.gapAt` when no other segment follows. Other checks detect a read beyond the end. */
export const noGap = 0x7fff_ffff;
