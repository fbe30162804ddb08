/**
 * Compares messages. Applications and tests use it; calls do not.
 */
import { type Field, fieldsOf, fieldValue, zeroOf } from './fields.ts';
import { bytesOf } from './typed-array.ts';
import type { MessageType } from './types.ts';
import { unknownOf } from './unknown.ts';

const nothing = new Uint8Array(0);

/**
 * Returns whether `a` and `b` are equal messages. `bytes` are compared by content, maps in any order, and an
 * absent field without presence equals its default. NaN equals NaN, so that a message equals its own copy; 0
 * equals -0. Kept unknown fields are compared as bytes.
 */
export function equals<T, Init>(type: MessageType<T, Init>, a: Init, b: Init): boolean {
  return sameMessage(type as MessageType<object>, a as object, b as object);
}

function sameMessage(type: MessageType<object>, a: object, b: object): boolean {
  return a === b || (fieldsOf(type).every((field) => sameField(field, a, b)) && sameUnknown(a, b));
}

function sameUnknown(a: object, b: object): boolean {
  return sameBytes(unknownOf(a) ?? nothing, unknownOf(b) ?? nothing);
}

function sameField(field: Field, a: object, b: object): boolean {
  const left = fieldValue(a, field);
  const right = fieldValue(b, field);
  switch (field.presence) {
    case 'repeated':
      return sameList(field, (left ?? []) as unknown[], (right ?? []) as unknown[]);
    case 'map':
      return sameMap(field, (left ?? {}) as object, (right ?? {}) as object);
    case 'implicit':
      return sameValue(field, left ?? zeroOf(field), right ?? zeroOf(field));
    default:
      if (left === undefined || right === undefined) return left === right;
      return sameValue(field, left, right);
  }
}

function sameValue(field: Field, a: unknown, b: unknown): boolean {
  if (field.message !== undefined) return sameMessage(field.message, a as object, b as object);
  if (field.scalar === 'bytes')
    return sameBytes(bytesOf(a as ArrayBufferView), bytesOf(b as ArrayBufferView));
  return a === b || (Number.isNaN(a) && Number.isNaN(b));
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && (a === b || Buffer.compare(a, b) === 0);
}

function sameList(field: Field, a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((value, i) => sameValue(field, value, b[i]));
}

function sameMap(field: Field, a: object, b: object): boolean {
  const entries = Object.entries(a);
  const other = b as { readonly [key: string]: unknown };
  return (
    entries.length === Object.keys(b).length &&
    entries.every(([key, value]) => Object.hasOwn(b, key) && sameValue(field, value, other[key]))
  );
}
