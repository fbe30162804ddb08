/**
 * Received messages in pieces (docs/wire/frames.md §2.4): the memory begins with a table of their lengths,
 * and each piece begins on 64 bytes, so that large `bytes` values can be used in place. Decoders know nothing
 * of it: positions count as if the pieces lay one behind the other, and a Source changes what its `bytes`
 * begin with whenever it comes to the next one. Used by Source, filled by runtime/boundary with what a peer
 * has sent.
 */

import { readWord } from './word.ts';

/** Where a piece begins: on the next multiple of this from the start of the memory. */
export const imageAlignment = 64;

/** The place of a piece that comes behind `at`. */
export function imagePlace(at: number): number {
  return Math.ceil(at / imageAlignment) * imageAlignment;
}

/** Bytes of a table of so many pieces, and its gap. */
export function imageTableBytes(pieces: number): number {
  return imagePlace(4 + 4 * pieces);
}

/** The longest image of a message that may have `messageBytes`. */
export function imageBytesMax(messageBytes: number): number {
  return messageBytes + Math.floor(messageBytes / 8) + 4096;
}

/** What reads an image: a Source. */
export interface PieceReader {
  readonly bytes: Uint8Array;
  /** Where the piece that it sees ends. */
  readonly gapAt: number;
  /** Changes the memory that it sees. */
  show(bytes: Uint8Array, gapAt: number): void;
}

const noBuffer = new ArrayBuffer(0);
const nothing = new Uint8Array(noBuffer);
/** A table of so many lengths is kept for the next image. */
const lengthsKept = 64;

export class Image {
  /** Of the message, without table and gaps. */
  bytes = 0;
  #memory: Uint8Array = nothing;
  /** Its own, and where in it that begins: to ask a typed array for these is a call of V8's each. */
  #buffer: ArrayBufferLike = noBuffer;
  #offset = 0;
  /**
   * Of the pieces, and how many they are. A copy: a peer that is trusted with memory may change what lies
   * there.
   */
  #lengths: Uint32Array = new Uint32Array(3);
  #count = 0;
  /** The piece that the source is in: its number, its first position, and its place in the memory. */
  #piece = 0;
  #first = 0;
  #place = 0;

  /**
   * The image that `memory`, which begins on 64 bytes, holds to its end. A text: why it is none. `image`: one
   * that nobody reads any more, and that is to be this one now. `buffer`: the memory's.
   */
  static of(
    memory: Uint8Array,
    image: Image = new Image(),
    buffer: ArrayBufferLike = memory.buffer,
  ): Image | string {
    return image.#open(memory, buffer) ?? image;
  }

  /** Lets go of the memory. */
  leave(): void {
    this.#memory = nothing;
    this.#buffer = noBuffer;
    if (this.#lengths.length > lengthsKept) this.#lengths = new Uint32Array(3);
  }

  #open(memory: Uint8Array, buffer: ArrayBufferLike): string | undefined {
    if (memory.length < 4) return 'an image without its table';
    const count = readWord(memory, 0);
    if (count === 0 || 4 + 4 * count > memory.length) return 'an image that ends in its table';
    if (count > this.#lengths.length) this.#lengths = new Uint32Array(count);
    const lengths = this.#lengths;
    let bytes = 0;
    let end = imageTableBytes(count);
    for (let i = 0; i < count; i++) {
      const length = readWord(memory, 4 + 4 * i);
      lengths[i] = length;
      bytes += length;
      if (length !== 0) end = imagePlace(end) + length;
    }
    if (end > memory.length && bytes !== 0) return 'an image that ends in a piece';
    this.#memory = memory;
    this.#buffer = buffer;
    this.#offset = memory.byteOffset;
    this.#count = count;
    this.bytes = bytes;
    return undefined;
  }

  /** Puts the source at the first piece. */
  enter(source: PieceReader): void {
    this.#piece = 0;
    this.#first = 0;
    this.#place = imageTableBytes(this.#count);
    this.moveTo(source, 0);
  }

  /**
   * Moves on to the piece that position `at` is in; with `at` on a boundary, to the piece that begins there.
   */
  moveTo(source: PieceReader, at: number): void {
    const lengths = this.#lengths;
    while (this.#piece + 1 < this.#count && at >= this.#first + (lengths[this.#piece] as number))
      this.#step();
    this.#show(source);
  }

  /**
   * Back to the piece that position `at` is in: a group's end is looked for before the group is read. Step by
   * step, not from the start: a peer may send many groups behind many pieces.
   */
  moveBack(source: PieceReader, at: number): void {
    if (at >= this.#first) return;
    while (at < this.#first) {
      const length = this.#lengths[--this.#piece] as number;
      this.#first -= length;
      this.#place -= imagePlace(length);
    }
    this.moveTo(source, at);
  }

  /** A copy of positions [start, end), in memory of its own, from whichever pieces they are in. */
  copy(source: PieceReader, start: number, end: number): Uint8Array {
    const whole = new Uint8Array(end - start);
    const here = this.#first;
    this.moveBack(source, start);
    for (let at = start; at < end; ) {
      this.moveTo(source, at);
      const stop = Math.min(end, this.#piece + 1 < this.#count ? source.gapAt : end);
      whole.set(source.bytes.subarray(at, stop), at - start);
      at = stop;
    }
    this.moveBack(source, here);
    this.moveTo(source, here);
    return whole;
  }

  #step(): void {
    const length = this.#lengths[this.#piece++] as number;
    this.#first += length;
    this.#place = imagePlace(this.#place + length);
  }

  /** The source's memory begins where position 0 would lie if this piece were the only one. */
  #show(source: PieceReader): void {
    const last = this.#piece + 1 === this.#count;
    const { length } = this.#memory;
    // Empty pieces may have their places behind the end.
    const at = Math.min(this.#place - this.#first, length);
    source.show(
      new Uint8Array(this.#buffer, this.#offset + at, length - at),
      last ? noGap : this.#first + (this.#lengths[this.#piece] as number),
    );
  }
}

/** Of `Source.gapAt`: no other piece follows. A position beyond it is found to be none by looking again. */
export const noGap = 0x7fff_ffff;
