/**
 * Extensions in JSON are members called `[full.name]` of the extended message. Only extensions in the
 * registry are converted. Their values come from the message's unknown fields. write.ts and read.ts call
 * these functions.
 */
import { CodecError } from '../error.ts';
import { type AnyExtension, codecOf, type Extendable, fieldNumbers } from '../extension.ts';
import { type Field, fieldsOf, fieldValue } from '../fields.ts';
import type { MessageType } from '../types.ts';
import { unknownOf } from '../unknown.ts';
import type { JsonValue } from '../wkt/struct.ts';
import { type MutableJson, put } from './object.ts';
import type { JsonReadOptions, JsonWriteOptions } from './options.ts';
import { readValue } from './read.ts';
import { writeValue } from './write.ts';

/** Returns the field that describes an extension: the only field of its codec's message. */
const fieldOf = (extension: AnyExtension): Field => fieldsOf(codecOf(extension))[0] as Field;

/**
 * Adds the extensions of `message`. Fields that the registry does not know are omitted, as all unknown fields
 * are.
 */
export function writeExtensions(
  json: MutableJson,
  type: MessageType<object>,
  message: Extendable,
  options: JsonWriteOptions,
  path: string,
  depth: number,
): void {
  const { registry } = options;
  const kept = unknownOf(message);
  if (registry === undefined || kept === undefined) return;
  for (const number of fieldNumbers(kept)) {
    const extension = registry.extensionOf(type.typeName, number);
    if (extension === undefined) continue;
    const field = fieldOf(extension);
    const name = `[${extension.name}]`;
    const value = fieldValue(codecOf(extension).decode(kept), field);
    if (value !== undefined) put(json, name, writeValue(field, value, options, `${path}.${name}`, depth));
  }
}

/**
 * Sets the extension that `name` (`[shop.v1.discount]`) stands for. Returns false when the registry has no
 * extension with this name for this type.
 */
export function readExtension(
  message: Extendable,
  type: MessageType<object>,
  name: string,
  json: JsonValue,
  options: JsonReadOptions,
  path: string,
  depth: number,
): boolean {
  const extension = options.registry?.extension(name.slice(1, -1));
  if (extension === undefined) return false;
  if (extension.extends !== type.typeName)
    throw new CodecError(path, `${name} is an extension of ${extension.extends}`);
  const value = readValue(fieldOf(extension), json, options, `${path}.${name}`, depth);
  if (value !== undefined) extension.set(message, value);
  return true;
}
