/**
 * The table of objects in registered memory: finds the slot of a key's object, and writes the object. Server
 * and clients find the slot without asking each other: a key is in one of a few slots, beginning with the
 * slot of its hash.
 */
import { encodedKey, objectBytes, readObject, writeObject } from './object.ts';

/** Number of slots in which a key may be. */
export const neighbours = 8;

/** Returns the first slot of a key, by its FNV-1a hash. */
export function slotOf(key: Uint8Array, slots: number): number {
  let hash = 0x811c_9dc5;
  for (const byte of key) hash = Math.imul(hash ^ byte, 0x0100_0193);
  return (hash >>> 0) % slots;
}

export const sameKey = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

export class Table {
  readonly slots: number;
  readonly valueMax: number;
  readonly #memory: Uint8Array;
  /** The keys by slot. Only the server's CPU uses this list. */
  readonly #keys: (Uint8Array | undefined)[] = [];

  /** `memory` must be filled with zeros and begin on a cache line. */
  constructor(memory: Uint8Array, valueMax: number) {
    this.#memory = memory;
    this.valueMax = valueMax;
    this.slots = Math.floor(memory.byteLength / objectBytes(valueMax));
  }

  /** Returns a copy of a value, which the server's CPU makes. */
  get(key: string): Uint8Array | undefined {
    const wanted = encodedKey(key);
    const first = slotOf(wanted, this.slots);
    for (let i = 0; i < neighbours; ++i) {
      const slot = (first + i) % this.slots;
      const found = this.#keys[slot];
      if (found === undefined) return undefined;
      const seen = sameKey(found, wanted) ? readObject(this.#object(slot), true) : 'empty';
      if (typeof seen === 'object') return seen.value;
    }
    return undefined;
  }

  #object(slot: number): Uint8Array {
    const size = objectBytes(this.valueMax);
    return this.#memory.subarray(slot * size, (slot + 1) * size);
  }

  /** Writes a value step by step (writeObject). Throws when the table has no room for the key. */
  put(key: string, value: Uint8Array): Generator<void> {
    if (value.byteLength > this.valueMax)
      throw new RangeError(
        `a value has at most ${this.valueMax} bytes, and this one has ${value.byteLength}`,
      );
    const wanted = encodedKey(key);
    const first = slotOf(wanted, this.slots);
    for (let i = 0; i < neighbours; ++i) {
      const slot = (first + i) % this.slots;
      const found = this.#keys[slot];
      if (found !== undefined && !sameKey(found, wanted)) continue;
      this.#keys[slot] = wanted;
      return writeObject(this.#object(slot), wanted, value);
    }
    throw new RangeError(`all ${neighbours} slots of '${key}' have other keys: make the table larger`);
  }
}
