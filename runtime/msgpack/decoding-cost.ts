/**
 * Counts the heap memory that decoding a message needs. For example, an empty object is one byte on the wire
 * and 64 bytes in V8. check.ts counts it before the message is decoded. One object per thread suffices,
 * because messages are checked one at a time.
 */
import { decodedBytesMax } from '../limits.ts';

/** Bytes in V8's heap, as measured. Kinds that are not listed here need no memory. */
export const Cost = {
  object: 64,
  array: 48,
  element: 8,
  text: 32,
  /** A Uint8Array with its own memory. */
  binary: 208,
  bigint: 32,
  date: 120,
} as const;

const field = 16;
/** Objects with at least this number of fields become hash tables. */
const tableFrom = 64;
const tableField = 48;
/**
 * Cost of a key that has not occurred in an object of this message so far. V8 then creates a new object
 * description, which takes time rather than memory (10 us when many keys differ). Therefore the cost is
 * higher than the memory.
 */
const newKey = 1024;
const keyBytesMax = 64;
const filterBits = 1 << 16;
/** With more keys than this, the filter would consider all keys known. */
const knownMax = filterBits / 4;

export class DecodingCost {
  #bytes = 0;
  /** Filter of known keys, by their hash. */
  readonly #known = new Uint8Array(filterBits / 8);
  #knownCount = 0;

  begin(): void {
    this.#bytes = 0;
    this.#forget();
  }

  /** Returns false when the total exceeds the limit of a message. */
  add(bytes: number): boolean {
    this.#bytes += bytes;
    return this.#bytes <= decodedBytesMax;
  }

  ofFields(count: number): number {
    return count * (count > tableFrom ? tableField : field);
  }

  /** Returns the cost of the key in [from, end), in an object with this number of fields. */
  ofKey(bytes: Uint8Array, from: number, end: number, fields: number): number {
    if (fields > tableFrom) return Cost.text + end - from;
    // the offset basis of FNV-1a
    let hash = 0x811c9dc5;
    for (let at = from; at < Math.min(end, from + keyBytesMax); ++at)
      hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
    hash = (hash ^ (hash >>> 16) ^ (end - from)) & (filterBits - 1);
    const bit = 1 << (hash & 7);
    if ((this.#known[hash >>> 3]! & bit) !== 0) return 0;
    if (++this.#knownCount > knownMax) this.#forget();
    this.#known[hash >>> 3]! |= bit;
    return newKey + end - from;
  }

  #forget(): void {
    if (this.#knownCount === 0) return;
    this.#known.fill(0);
    this.#knownCount = 0;
  }
}
