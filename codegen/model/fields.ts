/** Fields and oneofs of one message: types resolved, presence and property names decided. Called by build.ts. */
import protobuf from 'protobufjs';
import { jsonNameOf } from '../../runtime/codec/fields.ts';
import { type Building, documented } from './building.ts';
import type { Field, FieldType, Message, Oneof, Scalar } from './model.ts';
import { propertyName } from './names.ts';

const scalars: ReadonlySet<string> = new Set<Scalar>([
  'double',
  'float',
  'int32',
  'uint32',
  'sint32',
  'fixed32',
  'sfixed32',
  'int64',
  'uint64',
  'sint64',
  'fixed64',
  'sfixed64',
  'bool',
  'string',
  'bytes',
]);

export function isScalar(name: string): name is Scalar {
  return scalars.has(name);
}

export function buildFields(building: Building, node: protobuf.Type, path: string, message: Message): void {
  const oneofs = new Map<string, Oneof>();
  const keys = new Map<string, string>();
  const choose = (name: string, kind: 'field' | 'oneof', inside: Map<string, string>): string => {
    const key = propertyName(name);
    const clash = inside.get(key);
    const { name: token } = building.place(kind, `${path}.${name}`);
    if (clash !== undefined) building.report(token, `${clash} and ${name} both become ${key} in TypeScript`);
    inside.set(key, name);
    return key;
  };

  for (const field of [...node.fieldsArray].sort((a, b) => a.id - b.id)) {
    const place = building.place('field', `${path}.${field.name}`);
    const declared = field.options?.proto3_optional === true ? undefined : field.partOf;
    let oneof: Oneof | undefined;
    const oneofKeys = new Map<string, string>();
    if (declared) {
      oneof = oneofs.get(declared.name);
      if (oneof === undefined) {
        const key = choose(declared.name, 'oneof', keys);
        const fullName = `${message.fullName}.${declared.name}`;
        oneof = { key, fullName, fields: [], ...documented(declared.comment, declared.options) };
        oneofs.set(declared.name, oneof);
        message.oneofs.push(oneof);
      }
      for (const other of oneof.fields) oneofKeys.set(other.key, other.name);
    }
    const type = typeOf(building, field, message, place.type ?? place.name);
    const key = choose(field.name, 'field', oneof === undefined ? keys : oneofKeys);
    if (type === undefined) continue;
    const result: Field = {
      name: field.name,
      key,
      jsonName: jsonNameIn(field),
      fullName: `${message.fullName}.${field.name}`,
      number: field.id,
      type,
      presence: presenceOf(field, type, oneof),
      packed: field.repeated && isPackable(type) && field.options?.packed !== false,
      mapKey: field instanceof protobuf.MapField ? (field.keyType as Scalar) : undefined,
      oneof,
      ...documented(field.comment, field.options),
    };
    message.fields.push(result);
    oneof?.fields.push(result);
  }
}

function jsonNameIn(field: protobuf.Field): string {
  const own: unknown = field.options?.json_name;
  return typeof own === 'string' ? own : jsonNameOf(field.name);
}

/** Numbers, booleans and enums can be written as one packed run. */
function isPackable(type: FieldType): boolean {
  return (
    type.kind === 'enum' || (type.kind === 'scalar' && type.scalar !== 'string' && type.scalar !== 'bytes')
  );
}

function typeOf(
  building: Building,
  field: protobuf.Field,
  message: Message,
  token: Parameters<Building['report']>[0],
): FieldType | undefined {
  if (!isScalar(field.type)) return building.resolve(field.type, message.fullName, token);
  const wide = field.type.endsWith('64');
  const wanted = wide ? field.options?.jstype : undefined;
  const jstype = wanted === 'JS_STRING' ? 'string' : wanted === 'JS_NUMBER' ? 'number' : 'bigint';
  return { kind: 'scalar', scalar: field.type, jstype };
}

function presenceOf(field: protobuf.Field, type: FieldType, oneof: Oneof | undefined): Field['presence'] {
  if (field.map) return 'map';
  if (field.repeated) return 'repeated';
  if (oneof !== undefined) return 'oneof';
  return type.kind === 'message' || field.options?.proto3_optional === true ? 'optional' : 'implicit';
}
