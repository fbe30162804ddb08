/**
 * Primitives of the generated `bound` functions: how much each value may take. They know no names and refuse
 * nothing: what is of another kind than its field counts nothing, and the encoder, which looks at it next,
 * says what is wrong. Called by generated code only, for messages that are too large for the memory that is
 * at hand.
 */

import { nestingMax } from '../limits.ts';
import { byteLengthOf } from '../memory/intrinsic.ts';
import { holesMax, type Sink } from '../memory/sink.ts';
import { enter, leave, note } from './bulk-field.ts';
import { lengthBytes, stringRoom } from './room.ts';

const none: readonly never[] = [];

/**
 * Whether there is nothing of a message to measure: it is absent, or none. Behind one that is nested too
 * deeply nothing more is measured: the encoder comes no further either, and a message that is in itself twice
 * would have no end.
 */
export function sizeless(message: unknown, sink: Sink, depth: number): boolean {
  if (typeof message !== 'object' || message === null) return true;
  if (depth > nestingMax) sink.tooDeep = true;
  return sink.tooDeep;
}

export function sizeString(text: unknown): number {
  return typeof text === 'string' ? stringRoom(text) : 0;
}

export function sizeBytes(value: unknown, sink: Sink): number {
  // Of a typed array, too: the encoder refuses one where it is none of the field's.
  if (!ArrayBuffer.isView(value)) return 0;
  const length = byteLengthOf(value);
  if (length >= sink.gatherBytes && length !== 0 && sink.planned < holesMax) {
    sink.planned++;
    sink.gathered += length;
    if (length < sink.apartBytes) sink.copied += length;
    return lengthBytes;
  }
  return lengthBytes + length;
}

/** `bytes` with a threshold of their own. */
export function sizeBulk(value: unknown, sink: Sink, threshold: number): number {
  const usual = enter(sink, threshold);
  const size = sizeBytes(value, sink);
  leave(sink, usual);
  if (size !== 0) note(sink, value as ArrayBufferView, threshold);
  return size;
}

/** A oneof of which only strings and `bytes` have a length of their own. */
export function sizeChoice(choice: { readonly value?: unknown } | undefined, sink: Sink): number {
  const value = choice?.value;
  return typeof value === 'string' ? stringRoom(value) : sizeBytes(value, sink);
}

/** The elements of a list that has any. */
export function itemsOf<V>(list: readonly V[] | undefined): readonly V[] {
  return Array.isArray(list) ? list : none;
}

/** A list of at most `size` bytes for each element. */
export function sizeList(list: readonly unknown[] | undefined, size: number): number {
  return Array.isArray(list) ? lengthBytes + list.length * size : 0;
}

/** `size` bytes for each besides the string. */
export function sizeStrings(list: readonly string[] | undefined, size: number): number {
  if (!Array.isArray(list)) return 0;
  let n = lengthBytes + list.length * size;
  for (let i = 0; i < list.length; i++) n += sizeString(list[i]);
  return n;
}

const isMap = (map: unknown): map is object => typeof map === 'object' && map !== null && !Array.isArray(map);

/** The values of a map that has any. */
export function valuesOf<V>(map: { readonly [key: string]: V } | undefined): readonly V[] {
  return isMap(map) ? Object.values(map) : none;
}

/** A map whose keys are numbers, `size` bytes for each entry. */
export function sizeMap(map: object | undefined, size: number): number {
  return isMap(map) ? Object.keys(map).length * size : 0;
}

/** A map with strings as keys, `size` bytes for all else of each entry. */
export function sizeKeys(map: object | undefined, size: number): number {
  let n = 0;
  if (isMap(map)) for (const key of Object.keys(map)) n += size + stringRoom(key);
  return n;
}
