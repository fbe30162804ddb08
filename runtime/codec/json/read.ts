/**
 * Reads messages from JSON. Applications and tools call it through `rdma-rpc/json`; calls never do.
 */
import { CodecError, mismatch } from '../error.ts';
import { type Field, fieldsOf } from '../fields.ts';
import { nestingMax } from '../limits.ts';
import { newMap } from '../message.ts';
import { arrayFromBytes } from '../typed-array.ts';
import type { MessageType } from '../types.ts';
import type { JsonObject, JsonValue } from '../wkt/struct.ts';
import { readExtension } from './extensions.ts';
import { requireObject } from './object.ts';
import type { JsonReadOptions } from './options.ts';
import { bytesFromJson, enumFromJson, mapKeyFromJson, scalarFromJson } from './scalar.ts';
import { wellKnown } from './well-known.ts';
import { isNullValue } from './write.ts';

/** The fields of a type under both of their names. */
const names = new WeakMap<MessageType<object>, ReadonlyMap<string, Field>>();

function namesOf(type: MessageType<object>): ReadonlyMap<string, Field> {
  let byName = names.get(type);
  if (byName === undefined) {
    const fields = fieldsOf(type);
    // If the JSON name of one field equals the .proto name of another field, the JSON name wins.
    byName = new Map([
      ...fields.map((field) => [field.name, field] as const),
      ...fields.map((field) => [field.jsonName, field] as const),
    ]);
    names.set(type, byName);
  }
  return byName;
}

/** Returns whether `null` is a value of the field rather than its absence. */
function holdsNull(field: Field): boolean {
  return (
    field.message?.typeName === 'google.protobuf.Value' ||
    (field.enum !== undefined && isNullValue(field.enum))
  );
}

/**
 * Reads one value that is not a list or map. Returns undefined for an unknown enum value that is to be
 * ignored.
 */
function single(
  field: Field,
  json: JsonValue,
  options: JsonReadOptions,
  path: string,
  depth: number,
): unknown {
  if (field.message !== undefined) return readMessage(field.message, json, options, path, depth + 1);
  if (field.array !== undefined) return arrayFromBytes(field.array, bytesFromJson(json, path), path);
  if (field.scalar !== undefined) return scalarFromJson(field.scalar, json, field.jstype, path);
  const known = field.enum ?? {};
  if (json === null && isNullValue(known)) return 0;
  const value = enumFromJson(known, json, path);
  if (value === undefined && options.ignoreUnknownFields !== true)
    mismatch(path, json, `one of ${Object.keys(known).slice(0, 8).join(', ')}`);
  return value;
}

function list(field: Field, json: JsonValue, options: JsonReadOptions, path: string, depth: number): unknown {
  if (!Array.isArray(json)) return mismatch(path, json, 'an array');
  return (json as readonly JsonValue[])
    .map((each, i) => {
      if (each === null && !holdsNull(field)) mismatch(`${path}[${i}]`, each, 'a value');
      return single(field, each, options, `${path}[${i}]`, depth);
    })
    .filter((value) => value !== undefined);
}

function map(field: Field, json: JsonValue, options: JsonReadOptions, path: string, depth: number): unknown {
  const object = requireObject(json, path);
  const result = newMap<{ [key: string]: unknown }>();
  for (const key of Object.keys(object)) {
    const inside = `${path}[${JSON.stringify(key)}]`;
    const each = object[key] as JsonValue;
    if (each === null && !holdsNull(field)) mismatch(inside, each, 'a value');
    const name = mapKeyFromJson(field.mapKey ?? 'string', key, inside);
    if (name in result) throw new CodecError(inside, 'the key appears twice');
    const value = single(field, each, options, inside, depth);
    if (value !== undefined) result[name] = value;
  }
  return result;
}

/** Reads the value of a field. Returns undefined when the JSON means that the value is absent. */
export function readValue(
  field: Field,
  json: JsonValue,
  options: JsonReadOptions,
  path: string,
  depth: number,
): unknown {
  // `null` means absence, unless the field's type has its own null.
  if (json === null && (!holdsNull(field) || field.presence === 'repeated' || field.presence === 'map'))
    return undefined;
  const read = field.presence === 'repeated' ? list : field.presence === 'map' ? map : single;
  return read(field, json, options, path, depth);
}

/** Reads the fields of a message, ignoring the special forms of well-known types. */
export function readFields(
  type: MessageType<object>,
  json: JsonObject,
  options: JsonReadOptions,
  path: string,
  depth: number,
): object {
  const message = type.create() as { [key: string]: unknown };
  const known = namesOf(type);
  const seen = new Set<Field>();
  for (const name of Object.keys(json)) {
    const field = known.get(name);
    if (field === undefined) {
      if (
        name.startsWith('[') &&
        readExtension(message, type, name, json[name] as JsonValue, options, path, depth)
      )
        continue;
      if (options.ignoreUnknownFields === true) continue;
      throw new CodecError(
        path,
        `unknown field ${JSON.stringify(name)} (option ignoreUnknownFields ignores it)`,
      );
    }
    const inside = `${path}.${field.name}`;
    if (seen.has(field)) throw new CodecError(inside, 'the field appears twice, under both of its names');
    seen.add(field);
    const result = readValue(field, json[name] as JsonValue, options, inside, depth);
    if (result === undefined) continue;
    if (field.oneof === undefined) message[field.key] = result;
    else {
      const chosen = message[field.oneof] as { readonly case?: string } | undefined;
      if (chosen?.case !== undefined)
        throw new CodecError(inside, `another field of the same oneof, ${chosen.case}, is set too`);
      message[field.oneof] = { case: field.key, value: result };
    }
  }
  return message;
}

export function readMessage(
  type: MessageType<object>,
  json: JsonValue,
  options: JsonReadOptions,
  path: string,
  depth: number,
): object {
  if (depth > nestingMax) throw new CodecError(path, `messages are nested more than ${nestingMax} deep`);
  const special = wellKnown[type.typeName];
  return special === undefined
    ? readFields(type, requireObject(json, path), options, path, depth)
    : special.read(json, options, path, depth);
}
