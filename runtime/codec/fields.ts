/**
 * Descriptions of a message's fields, for code that handles messages of any type: JSON, equality, clone,
 * merge. Generated code lists the fields in a short form that costs nothing until it is used; this file
 * expands the short form once per type. Calls do not use it.
 */
import { type ArrayName, noArrays } from './typed-array.ts';
import {
  type EnumObject,
  type FieldEntry,
  isMessageType,
  type MessageType,
  type Presence,
  type Scalar,
} from './types.ts';

/**
 * Parses the field entries of a message. Generated code contains the entries as one text, because a compiler
 * parses a text as a single syntax node, and a list of lists as many nodes. The text has one word per entry,
 * with cells separated by colons. `*` stands for the next element of `more`, a type that is not a scalar. A
 * fifth cell holds properties that do not follow from the name.
 */
export function fieldEntries(text: string, more: readonly unknown[] = []): readonly FieldEntry[] {
  if (text === '') return [];
  let next = 0;
  return text.split(' ').map((word) => {
    const [name, type, presence, of, apart] = word.split(':');
    return [
      name,
      type === '*' ? more[next++] : type,
      presence || undefined,
      of || undefined,
      apart === undefined ? undefined : more[next++],
    ] as unknown as FieldEntry;
  });
}

export interface Field {
  /** The name as in the .proto. */
  readonly name: string;
  /** Property name in TypeScript; for a field in a oneof, its `case`. */
  readonly key: string;
  readonly jsonName: string;
  readonly presence: Presence;
  /** Undefined for messages and enums. */
  readonly scalar: Scalar | undefined;
  readonly enum: EnumObject | undefined;
  readonly message: MessageType<object> | undefined;
  /** The TypeScript type of 64-bit numbers. */
  readonly jstype: 'bigint' | 'string' | 'number';
  /** The typed array class that a `bytes` field is declared as. */
  readonly array: ArrayName | undefined;
  readonly mapKey: Scalar | undefined;
  /** Whether the enum allows only its own numbers, which matters for text format. */
  readonly closed: boolean;
  /** Whether the field is a group; text format calls a group by the name of its message. */
  readonly group: boolean;
  /** Property name of the oneof that contains the field. */
  readonly oneof: string | undefined;
}

/** Converts `foo_bar` to `fooBar`, by protobuf's rule for names in JSON. */
export function jsonNameOf(name: string): string {
  return name.replace(/_+([^_]?)/g, (_, next: string) => next.toUpperCase());
}

/**
 * Returns the JSON name with a lower-case first letter, which is the property name in TypeScript unless that
 * name is taken.
 */
export function keyOf(name: string): string {
  const json = jsonNameOf(name);
  return json.charAt(0).toLowerCase() + json.slice(1);
}

function expand([name, type, presence, of, apart = {}]: FieldEntry): Field {
  const scalar = typeof type === 'string' ? type : undefined;
  const message = typeof type === 'object' && isMessageType(type) ? type : undefined;
  return {
    name,
    key: apart.key ?? keyOf(name),
    jsonName: apart.jsonName ?? jsonNameOf(name),
    presence: presence ?? (message === undefined ? 'implicit' : 'optional'),
    scalar,
    enum: scalar === undefined && message === undefined ? (type as EnumObject) : undefined,
    message: message as MessageType<object> | undefined,
    jstype: apart.jstype ?? 'bigint',
    closed: apart.closed === true,
    group: apart.group === true,
    array: apart.array,
    mapKey: presence === 'map' ? (of as Scalar) : undefined,
    oneof: presence === 'oneof' ? of : undefined,
  };
}

// biome-ignore lint/suspicious/noExplicitAny: any type may be asked about
const known = new WeakMap<MessageType<any, any>, readonly Field[]>();

/** Returns the fields of a message, in the order of their numbers. */
export function fieldsOf<T, Init>(type: MessageType<T, Init>): readonly Field[] {
  let fields = known.get(type);
  if (fields === undefined) {
    fields = type.fields().map(expand);
    known.set(type, fields);
  }
  return fields;
}

/**
 * Returns the value of a field. Returns undefined when the field is absent, or when another field of its
 * oneof is set.
 */
export function fieldValue(message: object, field: Field): unknown {
  const record = message as { readonly [key: string]: unknown };
  if (field.oneof === undefined) return record[field.key];
  const chosen = record[field.oneof] as { readonly case?: unknown; readonly value?: unknown } | undefined;
  return chosen?.case === field.key ? chosen.value : undefined;
}

/** Returns the default of a singular field that is not a message. */
export function zeroOf(field: Field): unknown {
  if (field.enum !== undefined) return 0;
  switch (field.scalar) {
    case 'string':
      return '';
    case 'bool':
      return false;
    case 'bytes':
      return field.array === undefined ? new Uint8Array(0) : noArrays[field.array];
    case 'int64':
    case 'uint64':
    case 'sint64':
    case 'fixed64':
    case 'sfixed64':
      return field.jstype === 'bigint' ? 0n : field.jstype === 'string' ? '0' : 0;
    default:
      return 0;
  }
}

/** Returns whether a value can be a map field's value. */
export function isMap(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns whether a field's value would be left out of an encoding. This holds for the default of a field
 * without presence, for an empty list and for an empty map.
 */
export function isUnset(field: Field, value: unknown): boolean {
  switch (field.presence) {
    case 'implicit':
      return ArrayBuffer.isView(value) ? value.byteLength === 0 : Object.is(value, zeroOf(field));
    case 'repeated':
      return Array.isArray(value) && value.length === 0;
    case 'map':
      return isMap(value) && Object.keys(value).length === 0;
    default:
      return false;
  }
}
