/**
 * What a message takes in the heap of who decodes it: an empty object is one byte on the wire and 64 in V8.
 * Counted before anything is decoded, by check.ts; one for the thread, as messages are looked at one after
 * the other.
 */
import { decodedBytesMax } from '../limits.ts';

/** Bytes in V8's heap, measured; what is not here has none of its own. */
export const Cost = {
  object: 64,
  array: 48,
  element: 8,
  text: 32,
  /** A Uint8Array with memory of its own. */
  binary: 208,
  bigint: 32,
  date: 120,
} as const;

const field = 16;
/** Objects with more fields become hash tables. */
const tableFrom = 64;
const tableField = 48;
/**
 * A key that no smaller object of the message has had: V8 makes a description of such objects for each. That
 * is slow rather than large, 10 us where many are different, so it counts for more than its memory.
 */
const newKey = 1024;
const keyBytesMax = 64;
const filterBits = 1 << 16;
/** With more the filter would find all keys known. */
const knownMax = filterBits / 4;

export class DecodingCost {
  #bytes = 0;
  /** Keys by their hash. */
  readonly #known = new Uint8Array(filterBits / 8);
  #knownCount = 0;

  begin(): void {
    this.#bytes = 0;
    this.#forget();
  }

  /** False: it is more than a message may take. */
  add(bytes: number): boolean {
    this.#bytes += bytes;
    return this.#bytes <= decodedBytesMax;
  }

  ofFields(count: number): number {
    return count * (count > tableFrom ? tableField : field);
  }

  /** Of the key in [from, end), of an object with so many fields. */
  ofKey(bytes: Uint8Array, from: number, end: number, fields: number): number {
    if (fields > tableFrom) return Cost.text + end - from;
    // FNV-1a
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
