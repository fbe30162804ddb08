/**
 * A message that fits no slot, ready for submission: its gather entries, and the memory that they refer to.
 * BulkMessages (bulk.ts) creates this object on its JS thread.
 */
import { copiedMemory, GatherEntry, type NativeContext } from '../../native/native.ts';
import type { AlignedLayout } from './aligned-layout.ts';
import { stampedBlock } from './block-stamps.ts';
import { bufferKey } from './buffer-keys.ts';

/** The empty list that new messages share. */
export const none: never[] = [];

/** Stands for the context's encode scratch buffer, in place of a block. */
const scratch = 0;

/** Blocks may be longer than the largest value of a word. */
const wordMax = 0xffff_ffff;

export class BulkMessage {
  /**
   * The gather entries as words (`GatherEntry`), used when all of them lie in the arena. The lists below are
   * then empty.
   */
  words: number[] = none;
  /** The bytes of these entries, in order, are the encoded message or its aligned layout. */
  gatherEntries: Uint8Array[] = none;
  /**
   * The identity of each gather entry's buffer: 0 for the arena, `leasedMemory` for arena memory that the
   * application has leased, `copiedMemory` for a buffer that is to be copied.
   */
  keys: number[] = none;
  /** Arena blocks. This message holds one reference to each of them. */
  blocks: number[] = none;
  /** Whether the gather entries make up the aligned layout (docs/wire/frames.md §2.4). */
  aligned = false;
  /** Length of the message. */
  bytes = 0;
  /** Total length of the gather entries added so far. */
  added = 0;
  token = 0;
  next: BulkMessage | undefined = undefined;

  get count(): number {
    return this.words === none ? this.gatherEntries.length : this.words.length / GatherEntry.words;
  }

  /**
   * Allocates lists for this number of gather entries, because a list that grows reserves room for 17. 0
   * means that the number is unknown.
   */
  makeLists(gatherEntries: number): void {
    this.gatherEntries = new Array<Uint8Array>(gatherEntries);
    this.keys = new Array<number>(gatherEntries);
    this.added = 0;
  }

  /**
   * Gives a key to each buffer that was meant to be copied, so that the buffer is sent in place. Returns
   * false when the message has no such buffer.
   */
  leaveInPlace(): boolean {
    const first = this.keys.indexOf(copiedMemory);
    for (let i = first; i !== -1; i = this.keys.indexOf(copiedMemory, i))
      this.keys[i] = bufferKey(this.gatherEntries[i]!.buffer as ArrayBuffer);
    return first !== -1;
  }

  /**
   * Drops the gather entries after the values have been copied, so that the application's buffers are not
   * kept until the SENT event.
   */
  forgetGatherEntries(): void {
    this.gatherEntries = none;
    this.keys = none;
  }

  /**
   * Writes the gather entries as words, which is cheaper than lists. Returns false when a value lies outside
   * the arena, or at an offset that does not fit a word.
   */
  placeAll(native: NativeContext, layout: AlignedLayout): boolean {
    const text = this.blocks[0] ?? scratch;
    const words = new Array<number>(layout.gatherEntries * GatherEntry.words);
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
