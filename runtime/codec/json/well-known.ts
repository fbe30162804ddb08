/**
 * Converts the well-known types that have a special form in JSON. write.ts and read.ts call these functions.
 */
import { mismatch } from '../error.ts';
import type { Scalar } from '../types.ts';
import type { JsonValue } from '../wkt/struct.ts';
import {
  listFromJson,
  listToJson,
  structFromJson,
  structToJson,
  valueFromJson,
  valueToJson,
} from '../wkt/struct.ts';
import { readAny, writeAny } from './any.ts';
import { fieldMaskFromJson, fieldMaskToJson } from './field-mask.ts';
import { requireObject } from './object.ts';
import type { JsonReadOptions, JsonWriteOptions } from './options.ts';
import { scalarFromJson, scalarToJson } from './scalar.ts';
import { durationFromJson, durationToJson, timestampFromJson, timestampToJson } from './time.ts';

export interface WellKnown {
  write(message: object, options: JsonWriteOptions, path: string, depth: number): JsonValue;
  read(json: JsonValue, options: JsonReadOptions, path: string, depth: number): object;
}

/**
 * Makes the converters of a message with a single field. JSON shows such a message as the value of its field.
 */
function wrapper(scalar: Scalar): WellKnown {
  const zero = scalar === 'bool' ? false : scalar === 'string' ? '' : scalar.endsWith('64') ? 0n : 0;
  return {
    write(message, _options, path) {
      const { value = scalar === 'bytes' ? new Uint8Array(0) : zero } = message as { value?: unknown };
      return scalarToJson(scalar, value, path);
    },
    read: (json, _options, path) => ({ value: scalarFromJson(scalar, json, 'bigint', path) }),
  };
}

const text = (
  write: (message: object, path: string) => string,
  read: (json: unknown, path: string) => object,
): WellKnown => ({
  write: (message, _options, path) => write(message, path),
  read: (json, _options, path) => read(json, path),
});

/** The well-known types by full name. */
export const wellKnown: { readonly [typeName: string]: WellKnown | undefined } = Object.assign(
  Object.create(null) as { [typeName: string]: WellKnown },
  {
    'google.protobuf.Any': { write: writeAny, read: readAny },
    'google.protobuf.Timestamp': text(timestampToJson, timestampFromJson),
    'google.protobuf.Duration': text(durationToJson, durationFromJson),
    'google.protobuf.FieldMask': text(fieldMaskToJson, fieldMaskFromJson),
    'google.protobuf.Struct': {
      write: (message: object, _options: unknown, _path: string, depth: number) =>
        structToJson(message, depth),
      read: (json: JsonValue, _options: unknown, path: string, depth: number) =>
        structFromJson(requireObject(json, path), depth),
    },
    'google.protobuf.Value': {
      write: (message: object, _options: unknown, _path: string, depth: number) =>
        valueToJson(message, depth),
      read: (json: JsonValue, _options: unknown, _path: string, depth: number) => valueFromJson(json, depth),
    },
    'google.protobuf.ListValue': {
      write: (message: object, _options: unknown, _path: string, depth: number) => listToJson(message, depth),
      read: (json: JsonValue, _options: unknown, path: string, depth: number) => {
        if (!Array.isArray(json)) return mismatch(path, json, 'an array');
        return listFromJson(json as readonly JsonValue[], depth);
      },
    },
    'google.protobuf.DoubleValue': wrapper('double'),
    'google.protobuf.FloatValue': wrapper('float'),
    'google.protobuf.Int64Value': wrapper('int64'),
    'google.protobuf.UInt64Value': wrapper('uint64'),
    'google.protobuf.Int32Value': wrapper('int32'),
    'google.protobuf.UInt32Value': wrapper('uint32'),
    'google.protobuf.BoolValue': wrapper('bool'),
    'google.protobuf.StringValue': wrapper('string'),
    'google.protobuf.BytesValue': wrapper('bytes'),
  } satisfies { [typeName: string]: WellKnown },
);
