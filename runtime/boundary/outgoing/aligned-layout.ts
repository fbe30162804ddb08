/**
 * A message as an aligned message on its way out (docs/wire/frames.md §2.4): the table of its gather entries,
 * where each text and each copied value goes in the memory that it was encoded into, and which gather entries
 * that makes. Text and values take turns, a text first and last, which may be empty. Used by bulk.ts.
 */
import {
  alignedBytesMax,
  alignedOffset,
  alignedTableBytes,
  alignmentBytes,
} from '../../codec/memory/aligned-message.ts';
import { writeWord } from '../../codec/memory/word.ts';
import type { Writer } from '../../codec/memory/writer.ts';

export interface AlignedPlan {
  /** Values that have a place of their own. */
  readonly values: number;
  readonly tableBytes: number;
  /** Of the memory that the message is encoded into, the table included. */
  readonly roomBytes: number;
  /** Of these, for texts and copied values: the rest is for the table and gaps. */
  readonly contentBytes: number;
}

/**
 * Undefined: no aligned message, since there is no such value, or since it could be longer than an aligned
 * message may be. All lengths are upper bounds, `copied` is exact.
 */
export function planAligned(
  values: number,
  messageBytes: number,
  textBytes: number,
  copied: number,
  maxBytes: number,
): AlignedPlan | undefined {
  if (values === 0) return undefined;
  const gatherEntries = 2 * values + 1;
  const tableBytes = alignedTableBytes(gatherEntries);
  const extraBytes = tableBytes + alignmentBytes * gatherEntries;
  // What a bound says of a message that is too large is no reason: the exact length will be.
  if (extraBytes > alignedBytesMax(Math.min(messageBytes, maxBytes)) - Math.min(messageBytes, maxBytes))
    return undefined;
  const contentBytes = textBytes + copied;
  return { values, tableBytes, roomBytes: contentBytes + extraBytes, contentBytes };
}

/** What is written by loops: a native call costs as much as so many bytes. */
const loopBytes = 64;

/**
 * Where texts and values of an aligned message go. Filled again for one message after another, since what it
 * would have to make for each is a quarter of all that a large message makes.
 */
export class AlignedLayout {
  /**
   * The gather entries: stretches [from, to) of the memory, each with the value that comes behind it from
   * where it is, if there is one.
   */
  stretches = 0;
  readonly from: number[] = [];
  readonly to: number[] = [];
  readonly value: (Uint8Array | undefined)[] = [];

  /**
   * Texts and copied values: where each goes, where it is, and which hole of the writer it was, -1 for text.
   */
  #moves = 0;
  readonly #moveTo: number[] = [];
  readonly #moveFrom: number[] = [];
  readonly #moveBytes: number[] = [];
  readonly #moveHole: number[] = [];

  /** Of those that are not empty, and the values. */
  get gatherEntries(): number {
    let gatherEntries = 0;
    for (let i = 0; i < this.stretches; i++) {
      if (this.to[i]! > this.from[i]!) gatherEntries++;
      if (this.value[i] !== undefined) gatherEntries++;
    }
    return gatherEntries;
  }

  /**
   * Writes the table, moves what has to move, and says what the gather entries are. The text is what `writer`
   * has written behind the table, up to `end`. `words`: the same memory, by four bytes.
   */
  fill(writer: Writer, plan: AlignedPlan, memory: Uint8Array, end: number, words?: Int32Array): void {
    const { tableBytes, values } = plan;
    this.#moves = 0;
    clear(memory, 0, tableBytes, words);
    writeWord(memory, 0, 2 * values + 1);
    /** Where the last thing ends in the memory, where the stretch begins that it is in, and where it was. */
    let at = tableBytes;
    let begin = 0;
    let source = tableBytes;
    for (let i = 0; i <= writer.holes; i++) {
      const last = i === writer.holes;
      const textBytes = (last ? end : (writer.holeAt[i] as number)) - source;
      writeWord(memory, 4 + 8 * i, textBytes);
      if (textBytes !== 0) {
        at = alignedOffset(at);
        this.#addMove(at, source, textBytes, -1);
        source += textBytes;
        at += textBytes;
      }
      if (last) break;
      const value = writer.holeValue[i] as Uint8Array;
      writeWord(memory, 8 + 8 * i, value.length);
      const place = alignedOffset(at);
      if (writer.holeCopied[i] === true) {
        this.#addMove(place, 0, value.length, i);
        at = place + value.length;
      } else {
        // The gap goes along, so that text and value can go as one.
        this.#addStretch(begin, place, value);
        begin = place;
        at = place;
      }
    }
    this.#addStretch(begin, at, undefined);
    for (let i = this.#moves - 1; i >= 0; i--) this.#move(writer, memory, i, words);
  }

  /** Forgets the values. */
  empty(): void {
    for (let i = 0; i < this.stretches; i++) this.value[i] = undefined;
    this.stretches = 0;
  }

  #addStretch(from: number, to: number, value: Uint8Array | undefined): void {
    const i = this.stretches++;
    this.from[i] = from;
    this.to[i] = to;
    this.value[i] = value;
  }

  #addMove(to: number, from: number, bytes: number, hole: number): void {
    const i = this.#moves++;
    this.#moveTo[i] = to;
    this.#moveFrom[i] = from;
    this.#moveBytes[i] = bytes;
    this.#moveHole[i] = hole;
  }

  /** From the back to the front: nothing is moved onto what is still to be moved. */
  #move(writer: Writer, memory: Uint8Array, i: number, words?: Int32Array): void {
    const to = this.#moveTo[i]!;
    const from = this.#moveFrom[i]!;
    const bytes = this.#moveBytes[i]!;
    const hole = this.#moveHole[i]!;
    if (hole >= 0) memory.set(writer.holeValue[hole]!, to);
    else if (to !== from) moveText(memory, to, from, bytes);
    // What lies in the gap goes along: it may be of another call.
    clear(memory, to + bytes, alignedOffset(to + bytes), words);
  }
}

/** A text never moves to the front. */
function moveText(memory: Uint8Array, to: number, from: number, bytes: number): void {
  if (bytes > loopBytes) memory.copyWithin(to, from, from + bytes);
  else for (let i = bytes - 1; i >= 0; i--) memory[to + i] = memory[from + i]!;
}

/** Up to the end of a gap or a table, on 64 bytes. */
function clear(memory: Uint8Array, from: number, to: number, words: Int32Array | undefined): void {
  if (to - from > loopBytes) {
    memory.fill(0, from, to);
    return;
  }
  let at = from;
  const alone = words === undefined ? to : Math.min(to, (from + 3) & ~3);
  while (at < alone) memory[at++] = 0;
  if (words !== undefined) for (let i = at >> 2; i < to >> 2; i++) words[i] = 0;
}
