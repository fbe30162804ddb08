/** JSON objects with arbitrary keys. write.ts and read.ts call these functions. */
import { mismatch } from '../error.ts';
import type { JsonObject, JsonValue } from '../wkt/struct.ts';

export type MutableJson = { [key: string]: JsonValue };

/** Sets an own property, including one called `__proto__`. */
export function put<V>(object: { [key: string]: V }, key: string, value: V): void {
  if (key === '__proto__')
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  else object[key] = value;
}

export function requireObject(json: unknown, path: string): JsonObject {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) mismatch(path, json, 'a JSON object');
  return json as JsonObject;
}
