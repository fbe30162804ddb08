/**
 * Copies the segments of a message that is too large for a slot into one block. The segments lie in the
 * arena, in the encode scratch buffer or in memory of the application. LoopbackContext uses this file on its
 * JS thread.
 */
import { GatherEntry, type NativeContext } from '../native/native.ts';
import type { Blocks } from './blocks.ts';

/**
 * Each segment of an aligned message begins on a multiple of this number of bytes (docs/wire/frames.md §2.4).
 */
const alignmentBytes = 64;

const segmentPlace = (at: number): number => Math.ceil(at / alignmentBytes) * alignmentBytes;

/** Returns the segments that the words of `native.gatherEntries` describe. */
export function segmentsIn(
  native: Pick<NativeContext, 'gatherEntries' | 'scratch'>,
  blocks: Blocks,
  count: number,
): Uint8Array[] {
  const { gatherEntries, scratch } = native;
  return Array.from({ length: count }, (_, index) => {
    const at = index * GatherEntry.words;
    const block = gatherEntries[at + GatherEntry.block]!;
    const memory = block === 0 ? scratch : blocks.memoryOf(block);
    return new Uint8Array(
      memory,
      gatherEntries[at + GatherEntry.offset]! >>> 0,
      gatherEntries[at + GatherEntry.bytes]! >>> 0,
    );
  });
}

/** Returns the total bytes of the segments, including the gaps of an aligned message. */
export function extentOf(segments: readonly Uint8Array[], aligned: boolean): number {
  let end = 0;
  for (const { byteLength } of segments) end = (aligned ? segmentPlace(end) : end) + byteLength;
  return end;
}

export function copySegments(segments: readonly Uint8Array[], aligned: boolean, to: ArrayBuffer): void {
  const memory = new Uint8Array(to);
  let at = 0;
  for (const segment of segments) {
    if (aligned) at = segmentPlace(at);
    memory.set(segment, at);
    at += segment.byteLength;
  }
}
