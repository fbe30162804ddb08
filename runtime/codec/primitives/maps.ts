/**
 * Primitives for map fields. Only generated code calls them.
 */
import { mismatch } from '../error.ts';
import type { Source } from '../memory/source.ts';

/** The TypeScript type of a map's keys. At run time keys are always strings. */
type KeyOf<M> = string extends keyof M ? string : number;

/**
 * Throws unless the value is a map. Returns whether the map may be written with a `for (const key in map)`
 * loop. There are two reasons against such a loop: it also finds inherited keys, which are not entries; and a
 * single map without a prototype (a hash table, as our decoders create) makes the loop slow for all other
 * maps.
 */
export function checkMap(map: object, field: string): boolean {
  if (typeof map !== 'object' || map === null || Array.isArray(map) || map instanceof Map) {
    mismatch(field, map, 'a plain object');
  }
  if (Object.getPrototypeOf(map) !== Object.prototype) return false;
  for (const _ in Object.prototype) return false;
  return true;
}

/** Checks a map's kind and returns its keys. */
export function mapKeys<M extends object>(map: M, field: string): readonly KeyOf<M>[] {
  checkMap(map, field);
  return Object.keys(map) as KeyOf<M>[];
}

/** Gaps between keys up to this key do not count, because V8 keeps an array for such keys in any case. */
const denseMax = 31;
/** V8 permanently keeps the number keys of an object in a hash table once one of them is this large. */
const hashed = 2 ** 30;

/**
 * Sets `map[key]` for a numeric key. V8 keeps such keys in an array while the gaps are below 1,024, copies
 * the array whenever a key does not fit, and changes to a hash table in the end. The keys 0, 1000, 2000 …
 * would cost 700 ns each. Therefore a map whose keys have gaps is made to use the hash table from the start.
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
 * Converts a map's key back to a number. Only one spelling of each number is accepted, so that no two keys
 * become equal. The writers check the range.
 */
export function numberKey(key: number | string, field: string): number {
  const text = key as string;
  const { length } = text;
  // An empty key gives NaN. The following code rejects it, because it is neither a digit nor a sign.
  const sign = text.charCodeAt(0);
  let number = sign - 48;
  let i = 1;
  if (sign === 45) {
    number = text.charCodeAt(1) - 48;
    i = 2;
  }
  // Zero has no further digit and no sign.
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
