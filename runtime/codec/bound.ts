/**
 * Upper bounds of what the writers will need, and the primitives for them that `bound` functions of older generators call; those of today call size.ts.
 */
import { checkBytes, checkList, checkString } from './check.ts';
import { mapKeys } from './maps.ts';
import { holesMax, type Sink } from './sink.ts';

/** A length below 2^32 as a varint. */
export const lengthBytes = 5;

/** From here on measuring a string costs less than the memory that three bytes per character would waste. */
const measuredChars = 1024;

/** Most bytes of a string and its length. */
export function stringRoom(text: string): number {
  return lengthBytes + (text.length < measuredChars ? text.length * 3 : Buffer.byteLength(text));
}

export function boundString(text: string, field: string): number {
  checkString(text, field);
  return stringRoom(text);
}

export function boundBytes(value: Uint8Array, sink: Sink, field: string): number {
  checkBytes(value, field);
  const length = value.length;
  if (length >= sink.gatherBytes && length !== 0 && sink.planned < holesMax) {
    sink.planned++;
    sink.gathered += length;
    if (length < sink.apartBytes) sink.copied += length;
    return lengthBytes;
  }
  return lengthBytes + length;
}

/** The same for fields that may be absent. */
export function boundStringField(text: string | undefined, field: string): number {
  return text === undefined ? 0 : boundString(text, field);
}

export function boundBytesField(value: Uint8Array | undefined, sink: Sink, field: string): number {
  return value === undefined ? 0 : boundBytes(value, sink, field);
}

/** A list of at most `size` bytes for each element. */
export function boundList(list: readonly unknown[] | undefined, size: number, field: string): number {
  if (list === undefined) return 0;
  checkList(list, field);
  return lengthBytes + list.length * size;
}

/** `size` bytes for each besides the string. */
export function boundStrings(list: readonly string[] | undefined, size: number, field: string): number {
  let n = boundList(list, size, field);
  if (list !== undefined) for (let i = 0; i < list.length; i++) n += boundString(list[i]!, field);
  return n;
}

/** A map whose keys and values are numbers, `size` bytes for each entry. */
export function boundMap(map: object | undefined, size: number, field: string): number {
  return map === undefined ? 0 : mapKeys(map, field).length * size;
}

/** A map with strings as keys, `size` bytes for all else of each entry. */
export function boundKeys(
  map: { readonly [key: string]: unknown } | undefined,
  size: number,
  field: string,
): number {
  let n = 0;
  if (map !== undefined) for (const key of mapKeys(map, field)) n += size + stringRoom(key);
  return n;
}
