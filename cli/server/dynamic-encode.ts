/** Encodes messages of dynamic types, field by field as their tables say. Used by dynamic-type.ts. */
import { CodecError } from '../../runtime/codec/error.ts';
import { type Field, fieldsOf, fieldValue, isUnset } from '../../runtime/codec/fields.ts';
import { nestingMax } from '../../runtime/codec/limits.ts';
import { boolKey } from '../../runtime/codec/maps.ts';
import type { Scalar } from '../../runtime/codec/types.ts';
import { unknownOf } from '../../runtime/codec/unknown.ts';
import {
  type AnyMessage,
  type AnyType,
  encodeScalar,
  packable,
  tag,
  typeWire,
  wireOf,
  withLength,
} from './dynamic-wire.ts';

function keyFromText(scalar: Scalar, key: string, name: string): unknown {
  if (scalar === 'string') return key;
  if (scalar === 'bool') return boolKey(key, name);
  return scalar.endsWith('64') ? BigInt(key) : Number(key);
}

export function encodeMessage(type: AnyType, message: AnyMessage, depth: number): Uint8Array {
  const { numbers, delimited } = typeWire(type);
  const parts: Uint8Array[] = [];
  for (const [i, field] of fieldsOf(type).entries()) {
    const value = fieldValue(message, field);
    if (value === undefined || isUnset(field, value)) continue;
    const number = numbers[i]!;
    const name = `${type.typeName}.${field.name}`;
    if (field.presence === 'map') {
      for (const [key, each] of Object.entries(value as AnyMessage)) {
        const scalar = field.mapKey ?? 'string';
        const keyField = { scalar };
        const content = Buffer.concat([
          tag(1, wireOf(keyField).wireType),
          encodeScalar(wireOf(keyField), keyFromText(scalar, key, name), name),
          ...encodeField(field, 2, each, name, depth),
        ]);
        parts.push(tag(number, 2), withLength(content));
      }
    } else if (field.presence === 'repeated' && packable(field)) {
      const all = (value as unknown[]).map((each) => encodeScalar(wireOf(field), each, name));
      parts.push(tag(number, 2), withLength(Buffer.concat(all)));
    } else {
      const values = field.presence === 'repeated' ? (value as unknown[]) : [value];
      const group = delimited.has(number);
      for (const each of values) parts.push(...encodeField(field, number, each, name, depth, group));
    }
  }
  const unknown = unknownOf(message);
  if (unknown !== undefined) parts.push(unknown);
  return new Uint8Array(Buffer.concat(parts));
}

function encodeField(
  field: Field,
  number: number,
  value: unknown,
  name: string,
  depth: number,
  group = false,
): Uint8Array[] {
  if (field.message === undefined) {
    return [tag(number, wireOf(field).wireType), encodeScalar(wireOf(field), value, name)];
  }
  if (depth >= nestingMax) throw new CodecError(name, `messages are nested more than ${nestingMax} deep`);
  const content = encodeMessage(field.message as AnyType, value as AnyMessage, depth + 1);
  return group ? [tag(number, 3), content, tag(number, 4)] : [tag(number, 2), withLength(content)];
}
