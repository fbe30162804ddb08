/**
 * A message as an image on its way out (docs/WIRE.md §2.4): the table of its pieces, where each text and each copied value goes in the memory that it was encoded
 * into, and which pieces that makes. Text and values take turns, a text first and last, which may be empty. Used by bulk.ts.
 */
import { imageAlignment, imageBytesMax, imagePlace, imageTableBytes } from '../codec/memory/image.ts';
import type { Sink } from '../codec/memory/sink.ts';
import { writeWord } from '../codec/memory/word.ts';

export interface ImagePlan {
  /** Values that have a place of their own. */
  readonly values: number;
  readonly tableBytes: number;
  /** Of the memory that the message is encoded into, behind the table. */
  readonly roomBytes: number;
}

/** Undefined: no image, since there is no such value, or since it could be longer than an image may be. All lengths are upper bounds, `copied` is exact. */
export function planImage(
  values: number,
  messageBytes: number,
  textBytes: number,
  copied: number,
  maxBytes: number,
): ImagePlan | undefined {
  if (values === 0) return undefined;
  const pieces = 2 * values + 1;
  const tableBytes = imageTableBytes(pieces);
  const extraBytes = tableBytes + imageAlignment * pieces;
  // What a bound says of a message that is too large is no reason: the exact length will be.
  if (extraBytes > imageBytesMax(Math.min(messageBytes, maxBytes)) - Math.min(messageBytes, maxBytes))
    return undefined;
  return { values, tableBytes, roomBytes: textBytes + copied + extraBytes };
}

/** A stretch of the memory, and the value that comes behind it from where it is. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly value: Uint8Array | undefined;
}

/** A text or a copied value: where it is, and where it goes. */
interface Move {
  readonly to: number;
  readonly from: number;
  readonly bytes: number;
  readonly value: Uint8Array | undefined;
}

/** Writes the table, moves what has to move, and says what the pieces are. The text is what `sink` has written behind the table, up to `end`. */
export function layOut(sink: Sink, plan: ImagePlan, memory: Uint8Array, end: number): Stretch[] {
  const { tableBytes, values } = plan;
  memory.fill(0, 0, tableBytes);
  writeWord(memory, 0, 2 * values + 1);
  const stretches: Stretch[] = [];
  const moves: Move[] = [];
  /** Where the last thing ends in the memory, where the stretch begins that it is in, and where it was. */
  let at = tableBytes;
  let begin = 0;
  let source = tableBytes;
  for (let i = 0; i <= sink.holes; i++) {
    const last = i === sink.holes;
    const textBytes = (last ? end : (sink.holeAt[i] as number)) - source;
    writeWord(memory, 4 + 8 * i, textBytes);
    if (textBytes !== 0) {
      at = imagePlace(at);
      moves.push({ to: at, from: source, bytes: textBytes, value: undefined });
      source += textBytes;
      at += textBytes;
    }
    if (last) break;
    const value = sink.holeValue[i] as Uint8Array;
    writeWord(memory, 8 + 8 * i, value.length);
    const place = imagePlace(at);
    if (sink.holeCopied[i] === true) {
      moves.push({ to: place, from: 0, bytes: value.length, value });
      at = place + value.length;
    } else {
      // The gap goes along, so that text and value can go as one.
      stretches.push({ from: begin, to: place, value });
      begin = place;
      at = place;
    }
  }
  stretches.push({ from: begin, to: at, value: undefined });
  for (let i = moves.length - 1; i >= 0; i--) move(memory, moves[i] as Move);
  return stretches;
}

/** From the back to the front: nothing is moved onto what is still to be moved. */
function move(memory: Uint8Array, { to, from, bytes, value }: Move): void {
  if (value !== undefined) memory.set(value, to);
  else if (to !== from) memory.copyWithin(to, from, from + bytes);
  // What lies in the gap goes along: it may be of another call.
  memory.fill(0, to + bytes, imagePlace(to + bytes));
}
