/** Decodes messages of dynamic types; refuses what generated code refuses. Used by dynamic-type.ts. */
import { type Field, fieldsOf, fieldValue } from '../../runtime/codec/fields.ts';
import { newMap, noBytes } from '../../runtime/codec/message.ts';
import { readGroup } from '../../runtime/codec/proto2.ts';
import { readEnd, readLength, readMessage, readTag, skipField } from '../../runtime/codec/read.ts';
import type { Source } from '../../runtime/codec/source.ts';
import { keepUnknown } from '../../runtime/codec/unknown.ts';
import { type AnyMessage, type AnyType, packable, typeWire, wireOf } from './dynamic-wire.ts';

export function decodeMessage(
  type: AnyType,
  source: Source,
  at: number,
  end: number,
  depth: number,
  message: AnyMessage,
): AnyMessage {
  readMessage(source, at, depth, type.typeName);
  const { numbers, delimited, keepsUnknown } = typeWire(type);
  const fields = fieldsOf(type);
  while (at < end) {
    const start = at;
    const key = readTag(source, at, end);
    at = source.at;
    const number = key >>> 3;
    const field = fields[numbers.indexOf(number)];
    const wireType = key & 7;
    const group = delimited.has(number);
    if (field !== undefined && wireType === 2 && field.presence === 'repeated' && packable(field)) {
      const stop = readLength(source, at, end);
      for (at = source.at; at < stop; at = source.at)
        put(message, field, wireOf(field).read(source, at, stop));
      readEnd(source, at, stop);
    } else if (field?.presence === 'map' && wireType === 2) {
      at = decodeEntry(field, source, at, end, depth, message);
    } else if (
      field !== undefined &&
      wireType === (field.message === undefined ? wireOf(field).wireType : group ? 3 : 2)
    ) {
      const before = fieldValue(message, field);
      put(
        message,
        field,
        group
          ? decodeGroup(field, number, source, at, end, depth, before)
          : decodeValue(field, source, at, end, depth, before),
      );
      at = source.at;
    } else {
      at = skipField(source, key, at, end, depth);
      if (keepsUnknown) keepUnknown(message, source, start, at);
    }
  }
  readEnd(source, at, end);
  return message;
}

/** Leaves `source.at` behind it. A message that comes twice is merged. */
function decodeValue(
  field: Field,
  source: Source,
  at: number,
  end: number,
  depth: number,
  before: unknown,
): unknown {
  if (field.message === undefined) return wireOf(field).read(source, at, end);
  const stop = readLength(source, at, end);
  const value = decodeInto(field, source, source.at, stop, depth, before);
  source.at = stop;
  return value;
}

/** The same for a message between two tags. */
function decodeGroup(
  field: Field,
  number: number,
  source: Source,
  at: number,
  end: number,
  depth: number,
  before: unknown,
): unknown {
  const stop = readGroup(source, number, at, end, depth + 1);
  const behind = source.at;
  const value = decodeInto(field, source, at, stop, depth, before);
  source.at = behind;
  return value;
}

function decodeInto(
  field: Field,
  source: Source,
  at: number,
  stop: number,
  depth: number,
  before: unknown,
): unknown {
  const into =
    field.presence === 'repeated' || before === undefined ? newMap<AnyMessage>() : (before as AnyMessage);
  return decodeMessage(field.message as AnyType, source, at, stop, depth + 1, into);
}

function decodeEntry(
  field: Field,
  source: Source,
  at: number,
  end: number,
  depth: number,
  message: AnyMessage,
): number {
  const stop = readLength(source, at, end);
  const keyWire = wireOf({ scalar: field.mapKey });
  let key: unknown = field.mapKey === 'string' ? '' : field.mapKey === 'bool' ? false : 0;
  let value: unknown = field.message === undefined ? undefined : newMap();
  at = source.at;
  while (at < stop) {
    const inner = readTag(source, at, stop);
    at = source.at;
    if (inner === 8 + keyWire.wireType) {
      key = keyWire.read(source, at, stop);
      at = source.at;
    } else if (inner === 16 + (field.message === undefined ? wireOf(field).wireType : 2)) {
      value = decodeValue(field, source, at, stop, depth, undefined);
      at = source.at;
    } else at = skipField(source, inner, at, stop, depth);
  }
  readEnd(source, at, stop);
  const map = (message[field.key] ?? newMap()) as AnyMessage;
  message[field.key] = map;
  map[String(key)] = value ?? zeroValue(field);
  return stop;
}

function zeroValue({ scalar }: Field): unknown {
  if (scalar === 'string') return '';
  if (scalar === 'bytes') return noBytes;
  if (scalar === 'bool') return false;
  return scalar?.endsWith('64') === true ? 0n : 0;
}

function put(message: AnyMessage, field: Field, value: unknown): void {
  if (field.oneof !== undefined) message[field.oneof] = { case: field.key, value };
  else if (field.presence === 'repeated') {
    const list = (message[field.key] ?? []) as unknown[];
    list.push(value);
    message[field.key] = list;
  } else message[field.key] = value;
}
