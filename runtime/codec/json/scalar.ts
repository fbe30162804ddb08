/**
 * Converts scalars, enums and map keys to JSON and back, by the rules of protobuf's JSON mapping. write.ts,
 * read.ts and the well-known types call these functions.
 */
import { mismatch } from '../error.ts';
import { checkFloat, shortFloat } from '../float.ts';
import { whole, wide } from '../integer-range.ts';
import type { EnumObject, Scalar } from '../types.ts';

/** Matches base64 text, standard or URL-safe, with or without padding. */
const base64 = /^[A-Za-z0-9+/_-]*={0,2}$/;
/** Matches one half of a surrogate pair without the other half. */
const loneSurrogate = /\p{Surrogate}/u;
/** Matches a JSON number. Number() is stricter than JSON in some cases, and less strict in others. */
const jsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const wholeNumber = /^-?\d{1,20}$/;

function bigintOf(value: unknown, path: string): bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'string' && wholeNumber.test(value)) return BigInt(value);
  const number = typeof value === 'string' && jsonNumber.test(value) ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isInteger(number)) mismatch(path, value, 'a whole number');
  return BigInt(number);
}

// --- to JSON ---

export function scalarToJson(scalar: Scalar, value: unknown, path: string): boolean | number | string {
  switch (scalar) {
    case 'string':
      if (typeof value !== 'string') mismatch(path, value, 'a string');
      return value;
    case 'bool':
      if (typeof value !== 'boolean') mismatch(path, value, 'a boolean');
      return value;
    case 'bytes':
      if (!(value instanceof Uint8Array)) mismatch(path, value, 'a Uint8Array');
      return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
    case 'float':
    case 'double':
      if (typeof value !== 'number') mismatch(path, value, 'a number');
      if (!Number.isFinite(value)) return String(value);
      if (scalar === 'double') return value;
      checkFloat(value, path);
      return shortFloat(value);
    case 'int32':
    case 'sint32':
    case 'sfixed32':
    case 'uint32':
    case 'fixed32':
      if (typeof value !== 'number') mismatch(path, value, 'a number');
      return whole(value, scalar, path, value);
    default:
      return String(wide(bigintOf(value, path), scalar, path, value));
  }
}

/** Returns the first name of the value, or the number itself when it has no name. */
export function enumToJson(names: EnumObject, value: unknown, path: string): number | string {
  if (typeof value !== 'number' || value !== (value | 0)) mismatch(path, value, 'an enum value');
  for (const name of Object.keys(names)) if (names[name] === value) return name;
  return value;
}

// --- from JSON ---

function floating(value: unknown, path: string, single: boolean): number {
  if (value === 'NaN') return Number.NaN;
  if (value === 'Infinity') return Number.POSITIVE_INFINITY;
  if (value === '-Infinity') return Number.NEGATIVE_INFINITY;
  const number = typeof value === 'string' && jsonNumber.test(value) ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isFinite(number))
    mismatch(path, value, 'a number, "NaN", "Infinity" or "-Infinity"');
  if (!single) return number;
  checkFloat(number, path);
  // Round to a float, as a decoder would.
  return Math.fround(number);
}

export function bytesFromJson(value: unknown, path: string): Uint8Array {
  if (typeof value !== 'string' || !base64.test(value)) mismatch(path, value, 'a base64 string');
  const digits = value.indexOf('=') < 0 ? value.length : value.indexOf('=');
  if (digits % 4 === 1 || (digits < value.length && value.length % 4 !== 0))
    mismatch(path, value, 'a base64 string of a possible length');
  return new Uint8Array(Buffer.from(value, 'base64'));
}

export function scalarFromJson(
  scalar: Scalar,
  value: unknown,
  jstype: 'bigint' | 'string' | 'number',
  path: string,
): unknown {
  switch (scalar) {
    case 'string':
      if (typeof value !== 'string') mismatch(path, value, 'a string');
      if (loneSurrogate.test(value)) mismatch(path, value, 'a string without lone surrogates');
      return value;
    case 'bool':
      if (typeof value !== 'boolean') mismatch(path, value, 'true or false');
      return value;
    case 'bytes':
      return bytesFromJson(value, path);
    case 'float':
    case 'double':
      return floating(value, path, scalar === 'float');
    case 'int32':
    case 'sint32':
    case 'sfixed32':
    case 'uint32':
    case 'fixed32': {
      const number = typeof value === 'string' && jsonNumber.test(value) ? Number(value) : value;
      return whole(number as number, scalar, path, value);
    }
    default: {
      const exact = wide(bigintOf(value, path), scalar, path, value);
      if (jstype === 'bigint') return exact;
      if (jstype === 'string') return String(exact);
      const number = Number(exact);
      if (!Number.isSafeInteger(number))
        mismatch(path, value, 'a whole number within ±(2^53 - 1) (JS_NUMBER)');
      return number;
    }
  }
}

/** Returns undefined for a name that the enum does not have. */
export function enumFromJson(names: EnumObject, value: unknown, path: string): number | undefined {
  if (typeof value === 'string') {
    if (Object.hasOwn(names, value)) return names[value];
    return /^-?\d+$/.test(value) ? whole(Number(value), 'int32', path, value) : undefined;
  }
  return whole(value as number, 'int32', path, value);
}

/** Converts the key of a map, which is always a string in JSON and a property name in our maps. */
export function mapKeyFromJson(scalar: Scalar, key: string, path: string): string {
  if (scalar === 'bool') {
    if (key !== 'true' && key !== 'false') mismatch(path, key, '"true" or "false" as key');
    return key;
  }
  return String(scalarFromJson(scalar, key, 'bigint', path));
}
