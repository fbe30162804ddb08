/**
 * `rdma-rpc/json`: the canonical JSON mapping of protobuf, for tools, logs and gateways. It is bundled only
 * into applications that import it. Errors are CodecErrors that name the field, such as
 * `shop.v1.Order.items[2].price`.
 */
import { CodecError } from '../error.ts';
import type { MessageType } from '../types.ts';
import type { JsonValue } from '../wkt/struct.ts';
import { duplicateMember } from './duplicates.ts';
import type { JsonReadOptions, JsonWriteOptions } from './options.ts';
import { readMessage } from './read.ts';
import { writeMessage } from './write.ts';

export type { JsonObject, JsonValue } from '../wkt/struct.ts';
export type { JsonReadOptions, JsonWriteOptions } from './options.ts';
export { jsonReplacer } from './replacer.ts';

/**
 * Returns the message as a value for JSON.stringify. 64-bit numbers become strings, `bytes` become base64.
 * Throws CodecError for a value that does not fit its field.
 */
export function toJson<T, Init>(
  type: MessageType<T, Init>,
  message: Init,
  options: JsonWriteOptions = {},
): JsonValue {
  return writeMessage(type as MessageType<object>, message, options, type.typeName, 0);
}

/**
 * Returns the message as JSON text. `indent` is a number of spaces. With the default 0, everything is on one
 * line.
 */
export function toJsonString<T, Init>(
  type: MessageType<T, Init>,
  message: Init,
  options: JsonWriteOptions & { readonly indent?: number } = {},
): string {
  return JSON.stringify(toJson(type, message, options), null, options.indent);
}

/**
 * Returns the message for a value from JSON.parse. Throws CodecError for a value that does not have the
 * message's form.
 */
export function fromJson<T, Init>(
  type: MessageType<T, Init>,
  json: JsonValue,
  options: JsonReadOptions = {},
): T {
  return readMessage(type as MessageType<object>, json, options, type.typeName, 0) as T;
}

/** Decodes a message from JSON text. An object in the text may not have two members of the same name. */
export function fromJsonString<T, Init>(
  type: MessageType<T, Init>,
  text: string,
  options: JsonReadOptions = {},
): T {
  let json: JsonValue;
  try {
    json = JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new CodecError(type.typeName, `not JSON: ${(error as Error).message}`);
  }
  const twice = duplicateMember(text);
  if (twice !== undefined)
    throw new CodecError(type.typeName, `an object has two members called ${JSON.stringify(twice)}`);
  return fromJson(type, json, options);
}
