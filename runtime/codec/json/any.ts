/**
 * Converts Any to JSON and back. The fields of the contained message stand beside `@type`, or its special
 * form stands in `value`. well-known.ts calls these functions.
 */
import { CodecError, mismatch } from '../error.ts';
import type { AnyInit } from '../google/protobuf/any.rdma.ts';
import { checkBytes } from '../primitives/check.ts';
import type { MessageType } from '../types.ts';
import { anyTypeName, type Registry } from '../wkt/any.ts';
import type { JsonObject, JsonValue } from '../wkt/struct.ts';
import { type MutableJson, put, requireObject } from './object.ts';
import type { JsonReadOptions, JsonWriteOptions } from './options.ts';
import { readFields, readMessage } from './read.ts';
import { wellKnown } from './well-known.ts';
import { writeFields, writeMessage } from './write.ts';

const nothing = new Uint8Array(0);

function find(registry: Registry | undefined, typeUrl: string, path: string): MessageType<object> {
  const name = anyTypeName({ typeUrl });
  const type = typeUrl.includes('/') ? registry?.find(name) : undefined;
  if (type === undefined) {
    const hint = registry === undefined ? ' (option registry)' : '';
    throw new CodecError(path, `type ${JSON.stringify(typeUrl)} is not in the registry${hint}`);
  }
  return type;
}

export function writeAny(message: object, options: JsonWriteOptions, path: string, depth: number): JsonValue {
  const { typeUrl = '', value = nothing } = message as AnyInit;
  checkBytes(value, `${path}.value`);
  if (typeUrl === '' && value.length === 0) return {};
  const type = find(options.registry, typeUrl, path);
  const content = type.decode(value);
  const json: MutableJson = { '@type': typeUrl };
  if (wellKnown[type.typeName] !== undefined) {
    json.value = writeMessage(type, content, options, path, depth + 1);
    return json;
  }
  const fields = writeFields(type, content, options, path, depth + 1);
  for (const name of Object.keys(fields)) put(json, name, fields[name] as JsonValue);
  return json;
}

export function readAny(json: JsonValue, options: JsonReadOptions, path: string, depth: number): object {
  const object = requireObject(json, path);
  const { '@type': typeUrl, ...rest } = object;
  if (typeUrl === undefined && Object.keys(object).length === 0) return { typeUrl: '', value: nothing };
  if (typeof typeUrl !== 'string') return mismatch(`${path}["@type"]`, typeUrl, 'the URL of a type');
  const type = find(options.registry, typeUrl, path);
  return { typeUrl, value: type.encode(content(type, rest, options, path, depth + 1)) };
}

function content(
  type: MessageType<object>,
  json: JsonObject,
  options: JsonReadOptions,
  path: string,
  depth: number,
): object {
  if (wellKnown[type.typeName] === undefined) return readFields(type, json, options, path, depth);
  const { value, ...more } = json;
  const [other] = Object.keys(more);
  if (other !== undefined && options.ignoreUnknownFields !== true)
    throw new CodecError(path, `unexpected field ${JSON.stringify(other)} beside "value"`);
  if (value === undefined) throw new CodecError(path, 'a well-known type in an Any needs "value"');
  return readMessage(type, value, options, path, depth);
}
