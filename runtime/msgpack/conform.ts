/**
 * Checks values against the fields of a generated message and returns the fields as a plain object. It is for
 * messages with a schema that are encoded as MessagePack. msgpack-form.ts uses it in both directions.
 */

import { CodecError, mismatch } from '../codec/error.ts';
import { fieldNumbers } from '../codec/extension.ts';
import { type Field, fieldsOf, fieldValue, isUnset } from '../codec/fields.ts';
import { checkFloat } from '../codec/float.ts';
import { whole, wide } from '../codec/integer-range.ts';
import { newMap } from '../codec/message.ts';
import {
  checkBytes,
  checkList,
  checkMessage,
  checkOneof,
  checkString,
  unknownCase,
} from '../codec/primitives/check.ts';
import { bigintOfNumber, bigintOfString } from '../codec/primitives/jstype.ts';
import { boolKey, mapKeys, numberKey } from '../codec/primitives/maps.ts';
import { missing } from '../codec/primitives/proto2.ts';
import { arrayFromBytes, arrays, octets } from '../codec/typed-array.ts';
import type { MessageType } from '../codec/types.ts';
import { setUnknown, unknownOf } from '../codec/unknown.ts';

type Plain = { [key: string]: unknown };

/** The origin of a value. A peer may be newer, so unknown fields of its values are ignored. */
export type Origin = 'own' | 'peer';

function scalar(field: Field, value: unknown, origin: Origin, path: string): unknown {
  switch (field.scalar) {
    case undefined:
      return whole(value as number, 'int32', path);
    case 'string':
      checkString(value as string, path);
      return value;
    case 'bytes':
      if (field.array !== undefined) {
        if (origin === 'own') return octets(value as ArrayBufferView, arrays[field.array], path);
        checkBytes(value as Uint8Array, path);
        return arrayFromBytes(field.array, value as Uint8Array, path);
      }
      checkBytes(value as Uint8Array, path);
      return value;
    case 'bool':
      return typeof value === 'boolean' ? value : mismatch(path, value, 'a boolean');
    case 'float':
    case 'double':
      if (typeof value !== 'number') mismatch(path, value, 'a number');
      if (field.scalar === 'double') return value;
      checkFloat(value, path);
      return Math.fround(value);
    case 'int32':
    case 'sint32':
    case 'sfixed32':
    case 'uint32':
    case 'fixed32':
      return whole(value as number, field.scalar, path);
    default: {
      if (field.jstype === 'string') wide(bigintOfString(value as string, path), field.scalar, path);
      else if (field.jstype === 'number') wide(bigintOfNumber(value as number, path), field.scalar, path);
      else if (typeof value === 'bigint') wide(value, field.scalar, path);
      else mismatch(path, value, 'a bigint');
      return value;
    }
  }
}

function single(field: Field, value: unknown, origin: Origin, path: string, depth: number): unknown {
  if (field.message === undefined) return scalar(field, value, origin, path);
  return conform(field.message, value, origin, path, depth + 1);
}

function checkKey({ mapKey }: Field, key: string, path: string): void {
  // The MessagePack decoder renames this key.
  if (key === '__proto__') throw new CodecError(path, 'a key __proto__ cannot travel as MessagePack');
  switch (mapKey) {
    case 'string':
      return;
    case 'bool':
      boolKey(key, path);
      return;
    case 'int32':
    case 'sint32':
    case 'sfixed32':
    case 'uint32':
    case 'fixed32':
      whole(numberKey(key, path), mapKey, path);
      return;
    default:
      wide(bigintOfString(key, path), mapKey ?? 'int64', path);
  }
}

function whatFits(field: Field, value: unknown, origin: Origin, path: string, depth: number): unknown {
  if (field.presence === 'repeated') {
    checkList(value as unknown[], path);
    return (value as unknown[]).map((each) => single(field, each, origin, path, depth));
  }
  if (field.presence !== 'map') return single(field, value, origin, path, depth);
  const copy = newMap<Plain>();
  for (const key of mapKeys(value as Plain, path)) {
    checkKey(field, key, path);
    copy[key] = single(field, (value as Plain)[key], origin, path, depth);
  }
  return copy;
}

/**
 * Returns the fields of `value`, but leaves out a field that does not track presence and has its default
 * value. Does not change `value`. Throws CodecError, with the field's full name, for a value that is missing
 * or does not fit its field. `name` is the field that contains the message.
 */
export function conform(
  type: MessageType<object>,
  value: unknown,
  origin: Origin,
  name: string = type.typeName,
  depth = 0,
): Plain {
  checkMessage(value as object, depth, name);
  const message = value as Plain;
  const plain: Plain = {};
  const oneofs = new Set<string>();
  for (const field of fieldsOf(type)) {
    const { key, oneof } = field;
    if (oneof !== undefined && !oneofs.has(oneof)) {
      oneofs.add(oneof);
      if (message[oneof] !== undefined) checkOneof(message[oneof] as object, `${type.typeName}.${oneof}`);
    }
    const path = `${type.typeName}.${field.name}`;
    const given = fieldValue(message, field);
    if (given === undefined) {
      if (field.presence === 'required') missing(path);
      continue;
    }
    const taken = whatFits(field, given, origin, path, depth);
    if (oneof !== undefined) plain[oneof] = { case: key, value: taken };
    else if (!isUnset(field, taken)) plain[key] = taken;
  }
  if (origin === 'own') {
    for (const oneof of oneofs) {
      const chosen = message[oneof] as { readonly case?: unknown } | undefined;
      if (chosen?.case !== undefined && plain[oneof] === undefined)
        unknownCase(`${type.typeName}.${oneof}`, chosen);
    }
  }
  const unknown = unknownOf(message);
  if (unknown !== undefined) {
    checkBytes(unknown, `${type.typeName}.$unknownFields`);
    fieldNumbers(unknown);
    setUnknown(plain, unknown);
  }
  return plain;
}
