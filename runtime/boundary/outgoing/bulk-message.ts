/**
 * A message that fits no slot, as it is submitted: its gather entries, and the memory that they are in. Made
 * by BulkMessages (bulk.ts), on its JS thread.
 */
import { copiedMemory, GatherEntry, type NativeContext } from '../../native/native.ts';
import type { AlignedLayout } from './aligned-layout.ts';
import { stampedBlock } from './block-stamps.ts';
import { bufferKey } from './buffer-keys.ts';

/** Of messages that have nothing yet. */
export const none: never[] = [];

/** In place of a block: the context's scratch buffer. */
const scratch = 0;

/** Blocks may be longer than a word can say. */
const wordMax = 0xffff_ffff;

export class BulkMessage {
  /**
   * Of `GatherEntry`: when all gather entries lie in the arena, where each is. The lists below are empty
   * then.
   */
  words: number[] = none;
  /** In order, they are the encoding, or an aligned message of it. */
  gatherEntries: Uint8Array[] = none;
  /**
   * For each gather entry, the identity of its buffer, 0 for the arena, `leasedMemory` for the application's
   * share of it, `copiedMemory` for a buffer that is to be copied.
   */
  keys: number[] = none;
  /** Arena blocks with one reference of ours each. */
  blocks: number[] = none;
  /** The gather entries are an aligned message (docs/wire/frames.md §2.4). */
  aligned = false;
  /** Of the message. */
  bytes = 0;
  /** Of its gather entries, so far. */
  added = 0;
  token = 0;
  next: BulkMessage | undefined = undefined;

  get count(): number {
    return this.words === none ? this.gatherEntries.length : this.words.length / GatherEntry.words;
  }

  /** There will be so many gather entries: a list that grows makes room for 17. 0: nobody knows. */
  makeLists(gatherEntries: number): void {
    this.gatherEntries = new Array<Uint8Array>(gatherEntries);
    this.keys = new Array<number>(gatherEntries);
    this.added = 0;
  }

  /** Gives each buffer that was to be copied its key. False: there is none. */
  leaveInPlace(): boolean {
    const first = this.keys.indexOf(copiedMemory);
    for (let i = first; i !== -1; i = this.keys.indexOf(copiedMemory, i))
      this.keys[i] = bufferKey(this.gatherEntries[i]!.buffer as ArrayBuffer);
    return first !== -1;
  }

  /** They have been copied: buffers of the application need not wait for the SENT event. */
  forgetGatherEntries(): void {
    this.gatherEntries = none;
    this.keys = none;
  }

  /**
   * Says in words what the gather entries are, which is cheaper. False: a value lies elsewhere, or too far
   * in.
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
