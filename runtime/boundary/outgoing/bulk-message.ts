/**
 * A message that fits no slot, as it is submitted: its pieces, and the memory that they are in. Made by
 * BulkMessages (bulk.ts), on its JS thread.
 */
import { copiedMemory, type NativeContext, Piece } from '../../native/native.ts';
import { stampedBlock } from './block-stamps.ts';
import { bufferKey } from './buffer-keys.ts';
import type { ImageLayout } from './image-layout.ts';

/** Of messages that have nothing yet. */
export const none: never[] = [];

/** In place of a block: the context's text room. */
const textRoom = 0;

/** Blocks may be longer than a word can say. */
const wordMax = 0xffff_ffff;

export class BulkMessage {
  /** Of `Piece`: when all pieces lie in the arena, where each is. The lists below are empty then. */
  words: number[] = none;
  /** In order, they are the encoding, or an image of it. */
  pieces: Uint8Array[] = none;
  /**
   * For each piece, the identity of its buffer, 0 for the arena, `leasedMemory` for the application's share
   * of it, `copiedMemory` for a buffer that is to be copied.
   */
  keys: number[] = none;
  /** Arena blocks with one reference of ours each. */
  blocks: number[] = none;
  /** The pieces are an image (docs/wire/frames.md §2.4). */
  image = false;
  /** Of the message. */
  bytes = 0;
  /** Of its pieces, so far. */
  added = 0;
  token = 0;
  next: BulkMessage | undefined = undefined;

  get count(): number {
    return this.words === none ? this.pieces.length : this.words.length / Piece.words;
  }

  /** There will be so many pieces: a list that grows makes room for 17. 0: nobody knows. */
  makeLists(pieces: number): void {
    this.pieces = new Array<Uint8Array>(pieces);
    this.keys = new Array<number>(pieces);
    this.added = 0;
  }

  /** Gives each buffer that was to be copied its key. False: there is none. */
  leaveInPlace(): boolean {
    const first = this.keys.indexOf(copiedMemory);
    for (let i = first; i !== -1; i = this.keys.indexOf(copiedMemory, i))
      this.keys[i] = bufferKey(this.pieces[i]!.buffer as ArrayBuffer);
    return first !== -1;
  }

  /** They have been copied: buffers of the application need not wait for the SENT event. */
  forgetPieces(): void {
    this.pieces = none;
    this.keys = none;
  }

  /** Says in words what the pieces are, which is cheaper. False: a value lies elsewhere, or too far in. */
  placeAll(native: NativeContext, layout: ImageLayout): boolean {
    const text = this.blocks[0] ?? textRoom;
    const words = new Array<number>(layout.pieces * Piece.words);
    let at = 0;
    for (let i = 0; i < layout.stretches; i++) {
      const from = layout.from[i]!;
      const bytes = layout.to[i]! - from;
      if (bytes > 0) {
        words[at++] = text;
        words[at++] = from;
        words[at++] = bytes;
        words[at++] = 0;
      }
      const value = layout.value[i];
      if (value === undefined) continue;
      const block = stampedBlock(native, value.buffer);
      if (block === 0 || value.byteOffset > wordMax) return false;
      words[at++] = block;
      words[at++] = value.byteOffset;
      words[at++] = value.byteLength;
      words[at++] = 1;
    }
    this.words = words;
    return true;
  }
}
