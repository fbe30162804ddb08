/**
 * Converts plain JSON to Struct, Value and ListValue, and back. Applications and the JSON mapping use it.
 */
import { CodecError, mismatch } from '../error.ts';
import type {
  ListValue,
  ListValueInit,
  Struct,
  StructInit,
  Value,
  ValueInit,
} from '../google/protobuf/struct.rdma.ts';
import { nestingMax } from '../limits.ts';
import { newMap } from '../message.ts';

/** The type of JSON.parse's result. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
export type JsonObject = { readonly [key: string]: JsonValue };

const valueName = 'google.protobuf.Value';

function deeper(depth: number): number {
  if (depth >= nestingMax)
    throw new CodecError(valueName, `messages are nested more than ${nestingMax} deep (a cycle?)`);
  return depth + 1;
}

/** Throws CodecError for values that are not JSON: NaN, infinities, undefined, functions, cycles. */
export function structFromJson(json: JsonObject, depth = 0): Struct {
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    mismatch('google.protobuf.Struct', json, 'a JSON object');
  const fields = newMap<Struct['fields']>();
  for (const key of Object.keys(json)) fields[key] = valueFromJson(json[key] as JsonValue, deeper(depth));
  return { fields };
}

export function listFromJson(json: readonly JsonValue[], depth = 0): ListValue {
  if (!Array.isArray(json)) mismatch('google.protobuf.ListValue', json, 'an array');
  const values: Value[] = [];
  for (const value of json as readonly JsonValue[]) values.push(valueFromJson(value, deeper(depth)));
  return { values };
}

export function valueFromJson(json: JsonValue, depth = 0): Value {
  switch (typeof json) {
    case 'string':
      return { kind: { case: 'stringValue', value: json } };
    case 'boolean':
      return { kind: { case: 'boolValue', value: json } };
    case 'number':
      if (Number.isFinite(json)) return { kind: { case: 'numberValue', value: json } };
      break;
    case 'object':
      if (json === null) return { kind: { case: 'nullValue', value: 0 } };
      return Array.isArray(json)
        ? { kind: { case: 'listValue', value: listFromJson(json, deeper(depth)) } }
        : { kind: { case: 'structValue', value: structFromJson(json as JsonObject, deeper(depth)) } };
  }
  return mismatch(valueName, json, 'a JSON value');
}

/** The object has no prototype, so a key `__proto__` is a key like any other. */
export function structToJson(struct: StructInit, depth = 0): JsonObject {
  const json = newMap<{ [key: string]: JsonValue }>();
  const { fields = {} } = struct;
  for (const key of Object.keys(fields)) json[key] = valueToJson(fields[key] as ValueInit, deeper(depth));
  return json;
}

export function listToJson(list: ListValueInit, depth = 0): JsonValue[] {
  return (list.values ?? []).map((value) => valueToJson(value, deeper(depth)));
}

/** Throws CodecError for a Value that is empty, NaN or an infinity, because JSON cannot express it. */
export function valueToJson({ kind }: ValueInit, depth = 0): JsonValue {
  switch (kind?.case) {
    case 'nullValue':
      return null;
    case 'numberValue':
      if (!Number.isFinite(kind.value)) mismatch(`${valueName}.number_value`, kind.value, 'a finite number');
      return kind.value;
    case 'stringValue':
    case 'boolValue':
      return kind.value;
    case 'structValue':
      return structToJson(kind.value, deeper(depth));
    case 'listValue':
      return listToJson(kind.value, deeper(depth));
    default:
      throw new CodecError(valueName, 'is empty, which JSON cannot express');
  }
}
