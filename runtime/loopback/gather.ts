/**
 * Messages that fit no slot: their segments, which lie in the arena, in the encode scratch buffer or in
 * memory of the application, copied into one block. Used by LoopbackContext, on its JS thread.
 */
import { type NativeContext, Piece } from '../native/native.ts';
import type { Blocks } from './blocks.ts';

/** Each segment of an image begins on a multiple of this (docs/wire/frames.md §2.4). */
const imageAlignment = 64;

const segmentPlace = (at: number): number => Math.ceil(at / imageAlignment) * imageAlignment;

/** The segments that the words of `native.pieces` name. */
export function segmentsIn(
  native: Pick<NativeContext, 'pieces' | 'textRoom'>,
  blocks: Blocks,
  count: number,
): Uint8Array[] {
  const { pieces, textRoom } = native;
  return Array.from({ length: count }, (_, index) => {
    const at = index * Piece.words;
    const block = pieces[at + Piece.block]!;
    const memory = block === 0 ? textRoom : blocks.memoryOf(block);
    return new Uint8Array(memory, pieces[at + Piece.offset]! >>> 0, pieces[at + Piece.bytes]! >>> 0);
  });
}

/** Bytes that the segments take one behind the other, with the gaps of an image if they are one. */
export function extentOf(segments: readonly Uint8Array[], image: boolean): number {
  let end = 0;
  for (const { byteLength } of segments) end = (image ? segmentPlace(end) : end) + byteLength;
  return end;
}

export function copySegments(segments: readonly Uint8Array[], image: boolean, to: ArrayBuffer): void {
  const memory = new Uint8Array(to);
  let at = 0;
  for (const segment of segments) {
    if (image) at = segmentPlace(at);
    memory.set(segment, at);
    at += segment.byteLength;
  }
}
