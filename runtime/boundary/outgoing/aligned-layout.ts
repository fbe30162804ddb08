/**
 * Lays out an outgoing message in the aligned layout (docs/wire/frames.md §2.4). It determines the table of
 * the chunks, the positions of texts and copied values in the memory that the message was encoded into, and
 * the resulting gather entries. A *text* is the encoded bytes between two values. Texts and values alternate;
 * the first and the last are texts, which may be empty. bulk.ts uses it.
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
  /** Number of values that get a chunk of their own. */
  readonly values: number;
  readonly tableBytes: number;
  /** Size of the memory that the message is encoded into, including the table. */
  readonly roomBytes: number;
  /**
   * The part of these bytes that is used for texts and copied values; the other bytes are for the table and
   * the gaps.
   */
  readonly contentBytes: number;
}

/**
 * Plans the layout. Returns undefined when the message has no such value, or when the aligned message could
 * exceed its size limit. All lengths are upper bounds, except `copied`, which is exact.
 */
export function planAligned(
  values: number,
  messageBytes: number,
  textBytes: number,
  copied: number,
  maxBytes: number,
): AlignedPlan | undefined {
  if (values === 0) return undefined;
  const chunks = 2 * values + 1;
  const tableBytes = alignedTableBytes(chunks);
  const extraBytes = tableBytes + alignmentBytes * chunks;
  // A message must not be refused as too large because of its upper bound: its exact length is checked later.
  if (extraBytes > alignedBytesMax(Math.min(messageBytes, maxBytes)) - Math.min(messageBytes, maxBytes))
    return undefined;
  const contentBytes = textBytes + copied;
  return { values, tableBytes, roomBytes: contentBytes + extraBytes, contentBytes };
}

/**
 * Returns whether a getter has returned more than it did for `bound`, so that the values would not fit their
 * positions in the layout.
 */
export function hasGrown(writer: Writer, plan: AlignedPlan, textBytes: number): boolean {
  let bytes = textBytes;
  for (let i = 0; i < writer.outOfLine; i++)
    if (writer.outOfLineCopied[i] === true) bytes += writer.outOfLineValue[i]!.length;
  return writer.outOfLine > plan.values || bytes > plan.contentBytes;
}

/**
 * Ranges up to this length are written by loops, because a native call costs as much as writing that number
 * of bytes.
 */
const loopBytes = 64;

/**
 * The positions of the texts and values of an aligned message. The object is reused for one message after
 * another, because new objects would be a quarter of all objects that a large message allocates.
 */
export class AlignedLayout {
  /**
   * The gather list, as ranges [from, to) of the memory; a range may be followed by a value that is sent in
   * place.
   */
  stretches = 0;
  readonly from: number[] = [];
  readonly to: number[] = [];
  readonly value: (Uint8Array | undefined)[] = [];

  /**
   * The texts and copied values to move. Each range has its target, its source, and the index of the writer's
   * out-of-line value, which is -1 for a text.
   */
  #moves = 0;
  readonly #moveTo: number[] = [];
  readonly #moveFrom: number[] = [];
  readonly #moveBytes: number[] = [];
  readonly #moveOutOfLine: number[] = [];

  /** Number of gather entries, which are the non-empty ranges and the values. */
  get gatherEntries(): number {
    let gatherEntries = 0;
    for (let i = 0; i < this.stretches; i++) {
      if (this.to[i]! > this.from[i]!) gatherEntries++;
      if (this.value[i] !== undefined) gatherEntries++;
    }
    return gatherEntries;
  }

  /**
   * Writes the table, moves texts and values to their positions, and builds the gather list. The texts are
   * the bytes that `writer` has written behind the table, up to `end`. `words` is a view of the same memory.
   */
  fill(writer: Writer, plan: AlignedPlan, memory: Uint8Array, end: number, words?: Int32Array): void {
    const { tableBytes, values } = plan;
    this.#moves = 0;
    clear(memory, 0, tableBytes, words);
    writeWord(memory, 0, 2 * values + 1);
    let at = tableBytes; // the end of the last text or value in the memory
    let begin = 0; // the beginning of its range
    let source = tableBytes; // its original position
    for (let i = 0; i <= writer.outOfLine; i++) {
      const last = i === writer.outOfLine;
      const textBytes = (last ? end : (writer.outOfLineAt[i] as number)) - source;
      writeWord(memory, 4 + 8 * i, textBytes);
      if (textBytes !== 0) {
        at = alignedOffset(at);
        this.#addMove(at, source, textBytes, -1);
        source += textBytes;
        at += textBytes;
      }
      if (last) break;
      const value = writer.outOfLineValue[i] as Uint8Array;
      writeWord(memory, 8 + 8 * i, value.length);
      const place = alignedOffset(at);
      if (writer.outOfLineCopied[i] === true) {
        this.#addMove(place, 0, value.length, i);
        at = place + value.length;
      } else {
        // The gap is included, so that the text and the value form one gather entry.
        this.#addStretch(begin, place, value);
        begin = place;
        at = place;
      }
    }
    this.#addStretch(begin, at, undefined);
    for (let i = this.#moves - 1; i >= 0; i--) this.#move(writer, memory, i, words);
  }

  /** Drops the references to the values. */
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

  #addMove(to: number, from: number, bytes: number, outOfLine: number): void {
    const i = this.#moves++;
    this.#moveTo[i] = to;
    this.#moveFrom[i] = from;
    this.#moveBytes[i] = bytes;
    this.#moveOutOfLine[i] = outOfLine;
  }

  /** The last bytes are moved first, so that each byte is moved before its old place is overwritten. */
  #move(writer: Writer, memory: Uint8Array, i: number, words?: Int32Array): void {
    const to = this.#moveTo[i]!;
    const from = this.#moveFrom[i]!;
    const bytes = this.#moveBytes[i]!;
    const outOfLine = this.#moveOutOfLine[i]!;
    if (outOfLine >= 0) memory.set(writer.outOfLineValue[outOfLine]!, to);
    else if (to !== from) moveText(memory, to, from, bytes);
    // The gap is cleared, because it is sent too and may contain bytes of another call.
    clear(memory, to + bytes, alignedOffset(to + bytes), words);
  }
}

/** Moves a text. It never moves to a lower address. */
function moveText(memory: Uint8Array, to: number, from: number, bytes: number): void {
  if (bytes > loopBytes) memory.copyWithin(to, from, from + bytes);
  else for (let i = bytes - 1; i >= 0; i--) memory[to + i] = memory[from + i]!;
}

/** Clears the memory up to the end of a gap or a table, a multiple of 64 bytes. */
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
