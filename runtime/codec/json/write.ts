/**
 * Writes messages as JSON. Applications and tools call it through `rdma-rpc/json`; calls never do.
 */
import { CodecError, mismatch } from '../error.ts';
import { type Field, fieldsOf, fieldValue, isMap, isUnset, zeroOf } from '../fields.ts';
import { nestingMax } from '../limits.ts';
import { arrays, octets } from '../typed-array.ts';
import type { MessageType } from '../types.ts';
import type { JsonValue } from '../wkt/struct.ts';
import { writeExtensions } from './extensions.ts';
import { type MutableJson, put } from './object.ts';
import type { JsonWriteOptions } from './options.ts';
import { enumToJson, scalarToJson } from './scalar.ts';
import { wellKnown } from './well-known.ts';

/** Writes one value that is not a list or map. */
function single(
  field: Field,
  value: unknown,
  options: JsonWriteOptions,
  path: string,
  depth: number,
): JsonValue {
  if (field.message !== undefined) return writeMessage(field.message, value, options, path, depth + 1);
  if (field.array !== undefined)
    return scalarToJson('bytes', octets(value as ArrayBufferView, arrays[field.array], path), path);
  if (field.scalar !== undefined) return scalarToJson(field.scalar, value, path);
  const names = field.enum ?? {};
  if (isNullValue(names)) return null;
  return enumToJson(options.enumAsNumber === true ? {} : names, value, path);
}

/** Returns whether this is the enum NullValue, whose only value is the null of JSON. */
export function isNullValue(names: object): boolean {
  return Object.hasOwn(names, 'NULL_VALUE') && Object.keys(names).length === 1;
}

function list(
  field: Field,
  value: unknown,
  options: JsonWriteOptions,
  path: string,
  depth: number,
): JsonValue {
  if (!Array.isArray(value)) return mismatch(path, value, 'an array');
  return value.map((each, i) => single(field, each, options, `${path}[${i}]`, depth));
}

function map(
  field: Field,
  value: unknown,
  options: JsonWriteOptions,
  path: string,
  depth: number,
): JsonValue {
  if (!isMap(value)) return mismatch(path, value, 'a plain object');
  const json: MutableJson = {};
  for (const [key, each] of Object.entries(value))
    put(json, key, single(field, each, options, `${path}[${JSON.stringify(key)}]`, depth));
  return json;
}

function given(field: Field, message: object, options: JsonWriteOptions): unknown {
  const value = fieldValue(message, field);
  if (options.alwaysEmitImplicit !== true) return isUnset(field, value) ? undefined : value;
  if (value !== undefined) return value;
  if (field.presence === 'implicit') return zeroOf(field);
  return field.presence === 'repeated' ? [] : field.presence === 'map' ? {} : undefined;
}

/** Writes the value of a field, independent of its presence. */
export function writeValue(
  field: Field,
  value: unknown,
  options: JsonWriteOptions,
  path: string,
  depth: number,
): JsonValue {
  const write = field.presence === 'repeated' ? list : field.presence === 'map' ? map : single;
  return write(field, value, options, path, depth);
}

/** Writes the fields of a message, ignoring the special forms of well-known types. */
export function writeFields(
  type: MessageType<object>,
  message: object,
  options: JsonWriteOptions,
  path: string,
  depth: number,
): MutableJson {
  const json: MutableJson = {};
  for (const field of fieldsOf(type)) {
    const value = given(field, message, options);
    if (value === undefined) continue;
    const name = options.useProtoFieldName === true ? field.name : field.jsonName;
    put(json, name, writeValue(field, value, options, `${path}.${field.name}`, depth));
  }
  writeExtensions(json, type, message, options, path, depth);
  return json;
}

export function writeMessage(
  type: MessageType<object>,
  message: unknown,
  options: JsonWriteOptions,
  path: string,
  depth: number,
): JsonValue {
  if (typeof message !== 'object' || message === null || Array.isArray(message))
    return mismatch(path, message, 'an object');
  if (depth > nestingMax)
    throw new CodecError(path, `messages are nested more than ${nestingMax} deep (a cycle?)`);
  const special = wellKnown[type.typeName];
  return special === undefined
    ? writeFields(type, message, options, path, depth)
    : special.write(message, options, path, depth);
}
