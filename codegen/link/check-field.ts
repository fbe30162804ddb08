/**
 * Checks the rules of a field's options and features, some of which are allowed only for lists, for text or
 * for messages. check.ts calls it for each field and extension.
 */
import type { FieldDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import { labels, typeName } from '../descriptor/types.ts';
import { decodeOptions } from '../options/tree.ts';
import { closed, edition2024, FeatureScope, ownFeature, presences } from './features.ts';
import type { Schema, SchemaFile } from './schema.ts';

/** Field numbers in google.protobuf.FieldOptions. */
const fieldOptions = { ctype: 1, packed: 2, lazy: 5, jstype: 6 } as const;

/**
 * Returns the reason why `field` is invalid, without the rules that depend on other fields, or undefined when
 * it is valid.
 */
export function fieldFaults(
  schema: Schema,
  { descriptor: { syntax, edition = 0 } }: SchemaFile,
  field: FieldDescriptorProto,
  features: FeatureScope,
): string[] {
  const faults: string[] = [];
  const refuse = (condition: boolean, message: string): void => {
    if (condition) faults.push(message);
  };
  const type = typeName(field.type);
  // The unknown type has already been reported.
  if (type === undefined) return faults;
  const options = decodeOptions(schema, 'FieldOptions', field.options);
  const repeated = field.label === labels.repeated;
  const packable = !['string', 'bytes', 'message', 'group'].includes(type);
  const entry = schema.messageOf(type === 'message' ? (field.typeName ?? '') : '');
  const isMap = entry?.descriptor.options?.[0] === 0x38;
  const mapOfText = isMap && entry.descriptor.field.some((each) => typeName(each.type) === 'string');
  const own = (name: Parameters<typeof ownFeature>[3]) =>
    ownFeature(schema, 'FieldOptions', field.options, name);

  const packed = options?.get(fieldOptions.packed);
  refuse(packed === true && (!repeated || !packable), 'only repeated numbers can be packed');
  refuse(
    packed !== undefined && syntax === 'editions',
    'editions have no packed: write features.repeated_field_encoding',
  );
  refuse(
    options?.values.has(fieldOptions.ctype) === true && edition >= edition2024,
    'edition 2024 has no ctype: write features.(pb.cpp).string_type',
  );
  refuse(
    (options?.integer(fieldOptions.jstype) ?? 0) !== 0 && !type.endsWith('64'),
    'jstype is for 64-bit integers only',
  );
  refuse(
    options?.flag(fieldOptions.lazy) === true && type !== 'message' && type !== 'group',
    'lazy is for messages only',
  );

  const encoding = own('repeatedEncoding');
  refuse(encoding !== undefined && !repeated, 'repeated_field_encoding is for repeated fields only');
  refuse(encoding === 1 && repeated && !packable, 'only repeated numbers can be packed');
  refuse(own('utf8') !== undefined && type !== 'string' && !mapOfText, 'utf8_validation is for strings only');
  refuse(
    own('messageEncoding') !== undefined && (type !== 'message' || isMap),
    'message_encoding is for messages only',
  );
  const presence = own('presence');
  if (presence !== undefined) {
    refuse(repeated, 'a repeated field has no field_presence');
    refuse(field.oneofIndex !== undefined, 'a field of a oneof has no field_presence of its own');
    refuse(field.extendee !== undefined, 'an extension has no field_presence of its own');
    refuse(
      type === 'message' && presence === presences.implicit,
      'the presence of a message is never IMPLICIT',
    );
  }
  const implicit =
    features.get('presence') === presences.implicit &&
    !repeated &&
    field.oneofIndex === undefined &&
    field.extendee === undefined;
  refuse(
    implicit && syntax === 'editions' && field.defaultValue !== undefined,
    'a field of implicit presence has no default value',
  );
  const found = type === 'enum' ? schema.get(field.typeName ?? '') : undefined;
  if (found?.kind === 'enum' && (syntax === 'proto3' || implicit)) {
    const isClosed = FeatureScope.ofEnum(schema, found).get('enumType') === closed;
    refuse(
      isClosed,
      `${found.fullName} is a closed enum, which ${syntax === 'proto3' ? 'proto3 does not have' : 'a field of implicit presence cannot hold'}`,
    );
  }
  return faults;
}
