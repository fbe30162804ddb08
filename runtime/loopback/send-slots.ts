/**
 * The send slots of a loopback context: their memory, and the stack from which JS takes the numbers of free
 * slots. A message stays in its slot until the receiver has read it. LoopbackContext uses this file on its JS
 * thread.
 */
import { slotHeadBytes } from '../limits.ts';
import { Ctl } from '../native/native.ts';
import { noSlot, type Place } from './events.ts';

export class SendSlots {
  readonly free: Int32Array;
  readonly slab: ArrayBuffer;
  readonly stride: number;
  readonly memory: Uint8Array;
  readonly #control: Int32Array;

  constructor(control: Int32Array, count: number, slotBytes: number) {
    this.#control = control;
    this.stride = slotHeadBytes + slotBytes;
    this.slab = new ArrayBuffer(count * this.stride);
    this.memory = new Uint8Array(this.slab);
    this.free = Int32Array.from({ length: count }, (_, index) => count - 1 - index);
    control[Ctl.freeSlots] = count;
  }

  /** Returns the position of a slot's payload, or 0 for no slot. */
  payloadOf(slot: number): number {
    return slot === noSlot ? 0 : slot * this.stride + slotHeadBytes;
  }

  /** Returns a byte of the metadata in the slot, or 0 when the slot has no metadata there. */
  metadataByte({ slot, metadataBytes }: Place, at: number): number {
    return metadataBytes <= at ? 0 : this.memory[this.payloadOf(slot) + at]!;
  }

  release(slot: number): void {
    if (slot === noSlot) return;
    const free = this.#control[Ctl.freeSlots]!;
    this.free[free] = slot;
    this.#control[Ctl.freeSlots] = free + 1;
  }
}
