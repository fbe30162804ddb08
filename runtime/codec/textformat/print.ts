/** Prints messages in text format. index.ts calls these functions. */
import { CodecError, mismatch } from '../error.ts';
import { type AnyExtension, codecOf, fieldNumbers } from '../extension.ts';
import { type Field, fieldsOf, fieldValue, isMap, isUnset } from '../fields.ts';
import { shortFloat } from '../float.ts';
import { enumToJson, scalarToJson } from '../json/scalar.ts';
import { nestingMax } from '../limits.ts';
import { arrays, octets } from '../typed-array.ts';
import type { MessageType } from '../types.ts';
import { unknownOf } from '../unknown.ts';
import { anyTypeName, type Registry } from '../wkt/any.ts';
import { quoteBytes, quoteText } from './escape.ts';
import { textName } from './names.ts';
import type { TextWriteOptions } from './options.ts';
import { type UnknownField, unknownFields } from './unknown.ts';

function floatText(value: number, single: boolean): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value < 0 ? '-inf' : 'inf';
  if (Object.is(value, -0)) return '-0';
  return String(single ? shortFloat(value) : value);
}

/** Prints one value that is not a message. */
function scalarText({ scalar, enum: names, array }: Field, value: unknown, path: string): string {
  if (scalar === undefined) return String(enumToJson(names ?? {}, value, path));
  if (array !== undefined) return quoteBytes(octets(value as ArrayBufferView, arrays[array], path));
  if (scalar === 'bytes') {
    if (!(value instanceof Uint8Array)) return mismatch(path, value, 'a Uint8Array');
    return quoteBytes(value);
  }
  const plain = scalarToJson(scalar, value, path);
  if (scalar === 'string') return quoteText(String(plain));
  return scalar === 'float' || scalar === 'double'
    ? floatText(value as number, scalar === 'float')
    : String(plain);
}

export class Printer {
  readonly #registry: Registry | undefined;
  readonly #keepsUnknown: boolean;
  readonly #oneLine: boolean;
  readonly #parts: string[] = [];
  #depth = 0;

  constructor({ registry, unknownFields = false, oneLine = false }: TextWriteOptions) {
    this.#registry = registry;
    this.#keepsUnknown = unknownFields;
    this.#oneLine = oneLine;
  }

  print(type: MessageType<object>, message: object): string {
    this.#message(type, message, type.typeName);
    return this.#oneLine ? this.#parts.join(' ') : this.#parts.map((line) => `${line}\n`).join('');
  }

  #line(text: string): void {
    this.#parts.push(this.#oneLine ? text : '  '.repeat(this.#depth) + text);
  }

  #block(name: string, path: string, content: () => void): void {
    if (this.#depth >= nestingMax)
      throw new CodecError(path, `messages are nested more than ${nestingMax} deep (a cycle?)`);
    this.#line(`${name} {`);
    this.#depth++;
    content();
    this.#depth--;
    this.#line('}');
  }

  #message(type: MessageType<object>, message: unknown, path: string): void {
    if (typeof message !== 'object' || message === null || Array.isArray(message))
      mismatch(path, message, 'an object');
    if (type.typeName === 'google.protobuf.Any' && this.#any(message, path)) return;
    for (const field of fieldsOf(type)) {
      const value = fieldValue(message, field);
      if (value !== undefined && !isUnset(field, value))
        this.#field(field, textName(field), value, `${path}.${field.name}`);
    }
    const kept = unknownOf(message);
    if (kept !== undefined) this.#kept(type, kept, path);
  }

  /** Prints an expanded Any, if its type is known and its value valid. */
  #any(message: object, path: string): boolean {
    const { typeUrl = '', value } = message as { typeUrl?: string; value?: Uint8Array };
    const type = this.#registry?.find(anyTypeName({ typeUrl }));
    if (type === undefined || !typeUrl.includes('/')) return false;
    let content: object;
    try {
      content = type.decode(value ?? new Uint8Array(0));
    } catch {
      return false;
    }
    this.#block(`[${typeUrl}]`, path, () => this.#message(type, content, path));
    return true;
  }

  #field(field: Field, name: string, value: unknown, path: string): void {
    if (field.presence === 'map') this.#map(field, name, value, path);
    else if (field.presence !== 'repeated') this.#single(field, name, value, path);
    else if (!Array.isArray(value)) mismatch(path, value, 'an array');
    else for (const [i, each] of value.entries()) this.#single(field, name, each, `${path}[${i}]`);
  }

  #single(field: Field, name: string, value: unknown, path: string): void {
    const { message } = field;
    if (message === undefined) this.#line(`${name}: ${scalarText(field, value, path)}`);
    else this.#block(name, path, () => this.#message(message, value, path));
  }

  #map(field: Field, name: string, value: unknown, path: string): void {
    if (!isMap(value)) mismatch(path, value, 'a plain object');
    const { mapKey = 'string' } = field;
    for (const [key, each] of Object.entries(value)) {
      const inside = `${path}[${JSON.stringify(key)}]`;
      this.#block(name, inside, () => {
        this.#line(`key: ${mapKey === 'string' ? quoteText(key) : key}`);
        this.#single(field, 'value', each, inside);
      });
    }
  }

  /**
   * Prints the unknown fields of a message: extensions by name, and other fields by number if the option asks
   * for them.
   */
  #kept(type: MessageType<object>, bytes: Uint8Array, path: string): void {
    const found = new Map<number, AnyExtension>();
    for (const number of fieldNumbers(bytes)) {
      const extension = this.#registry?.extensionOf(type.typeName, number);
      if (extension === undefined) continue;
      found.set(number, extension);
      const field = fieldsOf(codecOf(extension))[0] as Field;
      const value = fieldValue(codecOf(extension).decode(bytes), field);
      if (value !== undefined)
        this.#field(field, `[${extension.name}]`, value, `${path}.[${extension.name}]`);
    }
    if (this.#keepsUnknown)
      this.#unknown(
        unknownFields(bytes).filter(({ number }) => !found.has(number)),
        path,
      );
  }

  #unknown(fields: readonly UnknownField[], path: string): void {
    for (const { number, value } of fields) {
      if (typeof value === 'string') this.#line(`${number}: ${value}`);
      else this.#block(String(number), path, () => this.#unknown(value, path));
    }
  }
}
