/**
 * Copies and merges messages. Applications use these functions; calls do not.
 */
import { CodecError } from './error.ts';
import { type Field, fieldsOf, fieldValue, isUnset } from './fields.ts';
import { nestingMax } from './limits.ts';
import { newMap } from './message.ts';
import { type ArrayClass, arrayOver, arrays, bytesOf } from './typed-array.ts';
import type { MessageType } from './types.ts';
import { setUnknown, unknownOf } from './unknown.ts';

type Mutable = { [key: string]: unknown };

/** Returns a complete copy that shares nothing with `message`, including its `bytes`. */
export function clone<T, Init>(type: MessageType<T, Init>, message: Init): T {
  return copied(type as MessageType<object>, message as object, 0) as T;
}

/**
 * Merges `source` into `target` and returns `target`. The result equals the result of decoding both encodings
 * one after the other: set fields of `source` replace those of `target`, lists are appended, and maps and
 * messages are merged. The result shares nothing with `source`.
 */
export function merge<T, Init>(type: MessageType<T, Init>, target: T, source: Init): T {
  mergeInto(type as MessageType<object>, target as object, source as object, 0);
  return target;
}

function copied(type: MessageType<object>, message: object, depth: number): object {
  const copy = type.create();
  mergeInto(type, copy, message, depth);
  return copy;
}

function mergeInto(type: MessageType<object>, target: object, source: object, depth: number): void {
  if (depth > nestingMax)
    throw new CodecError(type.typeName, `messages are nested more than ${nestingMax} deep (a cycle?)`);
  for (const field of fieldsOf(type)) {
    const value = fieldValue(source, field);
    if (value !== undefined && !isUnset(field, value)) mergeField(field, target as Mutable, value, depth);
  }
  const unknown = unknownOf(source);
  if (unknown !== undefined) {
    setUnknown(target, new Uint8Array(Buffer.concat([unknownOf(target) ?? new Uint8Array(0), unknown])));
  }
}

/** Copies a value of a field, a list element or a map value. The copy shares nothing with the value. */
export function copyOf(field: Field, value: unknown, depth: number): unknown {
  if (field.message !== undefined) return copied(field.message, value as object, depth + 1);
  if (field.scalar !== 'bytes') return value;
  if (field.array !== undefined)
    return arrayOver(arrays[field.array] as ArrayClass, bytesOf(value as ArrayBufferView).slice());
  return Uint8Array.prototype.slice.call(value);
}

/**
 * Applies `value` to a field of a message: lists are appended, maps and messages merged, everything else
 * replaced.
 */
export function mergeField(field: Field, target: Mutable, value: unknown, depth: number): void {
  const before = fieldValue(target, field);
  switch (field.presence) {
    case 'repeated': {
      const list = (before ?? []) as unknown[];
      target[field.key] = [...list, ...(value as unknown[]).map((each) => copyOf(field, each, depth))];
      return;
    }
    case 'map': {
      const map = (before ?? newMap<Mutable>()) as Mutable;
      for (const [key, each] of Object.entries(value as object)) map[key] = copyOf(field, each, depth);
      target[field.key] = map;
      return;
    }
    default: {
      if (field.message !== undefined && before !== undefined) {
        mergeInto(field.message, before as object, value as object, depth + 1);
        return;
      }
      const copy = copyOf(field, value, depth);
      if (field.oneof === undefined) target[field.key] = copy;
      else target[field.oneof] = { case: field.key, value: copy };
    }
  }
}
