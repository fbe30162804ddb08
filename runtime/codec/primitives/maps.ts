/** Primitives for map fields. Called by generated code only. */
import { mismatch } from '../error.ts';
import type { Source } from '../memory/source.ts';

/** How a map's keys are typed. At run time they are strings, always. */
type KeyOf<M> = string extends keyof M ? string : number;

/**
 * Refuses what is no map. Returns whether a loop `for (const key in map)` is the way to write it: it finds
 * inherited keys, too, which are no entries, and one map without a prototype (a hash table, as our decoders
 * make them) makes it slow for all others.
 */
export function checkMap(map: object, field: string): boolean {
  if (typeof map !== 'object' || map === null || Array.isArray(map) || map instanceof Map) {
    mismatch(field, map, 'a plain object');
  }
  if (Object.getPrototypeOf(map) !== Object.prototype) return false;
  for (const _ in Object.prototype) return false;
  return true;
}

/** The keys of a map, and the check of its kind. */
export function mapKeys<M extends object>(map: M, field: string): readonly KeyOf<M>[] {
  checkMap(map, field);
  return Object.keys(map) as KeyOf<M>[];
}

/** Above the keys that a list would have, below those that V8 takes for a list in any case. */
const denseMax = 31;
/** A key so large that V8 keeps the object's number keys in a hash table for good. */
const hashed = 2 ** 30;

/**
 * Sets `map[key]`, a key that is a number. V8 keeps such keys in an array while the gaps are below 1,024,
 * copies it whenever one does not fit, and ends with a hash table all the same: 0, 1000, 2000 … cost 700 ns
 * each. A map whose keys have gaps is told to begin with the table.
 */
export function putNumber<V>(source: Source, map: { [key: number]: V }, key: number, value: V): void {
  if (key > denseMax && source.sparse !== map && map[key - 1] === undefined) {
    if (map[hashed] === undefined) {
      map[hashed] = value;
      delete map[hashed];
    }
    source.sparse = map;
  }
  map[key] = value;
}

/**
 * Back from a map's key to the number that it is. One way of writing each number: no two keys become the same
 * one. The writers check the range.
 */
export function numberKey(key: number | string, field: string): number {
  const text = key as string;
  const { length } = text;
  // NaN of an empty key is neither a sign nor a digit.
  const sign = text.charCodeAt(0);
  let number = sign - 48;
  let i = 1;
  if (sign === 45) {
    number = text.charCodeAt(1) - 48;
    i = 2;
  }
  // A zero stands alone, and without a sign.
  if (!(number >= 0 && number <= 9) || (number === 0 && length > 1) || length > 11) refuseKey(text, field);
  for (; i < length; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (digit < 0 || digit > 9) refuseKey(text, field);
    number = number * 10 + digit;
  }
  return sign === 45 ? -number : number;
}

function refuseKey(key: string, field: string): never {
  mismatch(field, key, 'a whole number as key');
}

export function boolKey(key: string, field: string): boolean {
  if (key !== 'true' && key !== 'false') mismatch(field, key, '`true` or `false` as key');
  return key === 'true';
}
