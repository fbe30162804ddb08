/**
 * The table of objects in registered memory: where a key's object is, and writing it. Server and clients
 * agree on the place without asking each other: a key is in one of a few slots from its hash on.
 */
import { encodedKey, objectBytes, readObject, writeObject } from './object.ts';

/** Number of slots in which a key may be. */
export const neighbours = 8;

/** FNV-1a. */
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
  /** The keys by slot: only the server's CPU looks at this. */
  readonly #keys: (Uint8Array | undefined)[] = [];

  /** `memory`: zeroed, and begins on a cache line. */
  constructor(memory: Uint8Array, valueMax: number) {
    this.#memory = memory;
    this.valueMax = valueMax;
    this.slots = Math.floor(memory.byteLength / objectBytes(valueMax));
  }

  /** Returns a copy of a value, by the server's CPU. */
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
