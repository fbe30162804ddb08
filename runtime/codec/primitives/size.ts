/**
 * Primitives of the generated `bound` functions, which compute how much room each value may need. They know
 * no field names and refuse nothing. A value of the wrong kind counts as 0, and the encoder, which runs next,
 * reports it. Only generated code calls them, for messages that are too large for the available memory.
 */

import { nestingMax } from '../limits.ts';
import { byteLengthOf } from '../memory/intrinsic.ts';
import { outOfLineMax, type Writer } from '../memory/writer.ts';
import { enter, leave, note } from './bulk-field.ts';
import { lengthBytes, stringRoom } from './room.ts';

const none: readonly never[] = [];

/**
 * Returns whether a message needs no measuring, because it is absent or not an object. Messages nested too
 * deeply are not measured either. The encoder will not reach them, and a message that contains itself would
 * have no end.
 */
export function sizeless(message: unknown, writer: Writer, depth: number): boolean {
  if (typeof message !== 'object' || message === null) return true;
  if (depth > nestingMax) writer.tooDeep = true;
  return writer.tooDeep;
}

export function sizeString(text: unknown): number {
  return typeof text === 'string' ? stringRoom(text) : 0;
}

export function sizeBytes(value: unknown, writer: Writer): number {
  // Accepts any typed array, because the encoder refuses an array of the wrong type.
  if (!ArrayBuffer.isView(value)) return 0;
  const length = byteLengthOf(value);
  if (length >= writer.gatherBytes && length !== 0 && writer.planned < outOfLineMax) {
    writer.planned++;
    writer.gathered += length;
    if (length < writer.apartBytes) writer.copied += length;
    return lengthBytes;
  }
  return lengthBytes + length;
}

/** Measures a `bytes` value with a threshold of its own. */
export function sizeBulk(value: unknown, writer: Writer, threshold: number): number {
  const usual = enter(writer, threshold);
  const size = sizeBytes(value, writer);
  leave(writer, usual);
  if (size !== 0) note(writer, value as ArrayBufferView, threshold);
  return size;
}

/** Measures a oneof in which only strings and `bytes` have a variable length. */
export function sizeChoice(choice: { readonly value?: unknown } | undefined, writer: Writer): number {
  const value = choice?.value;
  return typeof value === 'string' ? stringRoom(value) : sizeBytes(value, writer);
}

/** Returns the elements of a list, or an empty list. */
export function itemsOf<V>(list: readonly V[] | undefined): readonly V[] {
  return Array.isArray(list) ? list : none;
}

/** Measures a list, at most `size` bytes for each element. */
export function sizeList(list: readonly unknown[] | undefined, size: number): number {
  return Array.isArray(list) ? lengthBytes + list.length * size : 0;
}

/** Measures a list of strings, with `size` bytes for each element in addition to the string. */
export function sizeStrings(list: readonly string[] | undefined, size: number): number {
  if (!Array.isArray(list)) return 0;
  let n = lengthBytes + list.length * size;
  for (let i = 0; i < list.length; i++) n += sizeString(list[i]);
  return n;
}

const isMap = (map: unknown): map is object => typeof map === 'object' && map !== null && !Array.isArray(map);

/** Returns the values of a map, or an empty list. */
export function valuesOf<V>(map: { readonly [key: string]: V } | undefined): readonly V[] {
  return isMap(map) ? Object.values(map) : none;
}

/** Measures a map with numeric keys, `size` bytes for each entry. */
export function sizeMap(map: object | undefined, size: number): number {
  return isMap(map) ? Object.keys(map).length * size : 0;
}

/** Measures a map with string keys, `size` bytes for the rest of each entry. */
export function sizeKeys(map: object | undefined, size: number): number {
  let n = 0;
  if (isMap(map)) for (const key of Object.keys(map)) n += size + stringRoom(key);
  return n;
}
