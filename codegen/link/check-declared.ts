/**
 * Checks declarations of extensions. An extension range that has declarations, or that requires them, accepts
 * no other extensions. check.ts calls it for each extension.
 */
import type { DescriptorProto, FieldDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import { labels, typeName } from '../descriptor/types.ts';
import { decodeOptions, OptionTree } from '../options/tree.ts';
import type { Schema } from './schema.ts';

/** Field numbers in google.protobuf.ExtensionRangeOptions and its Declaration. */
const range = { declaration: 2, verification: 3 } as const;
const declaration = { number: 1, fullName: 2, type: 3, reserved: 5, repeated: 6 } as const;
/** VerificationState.DECLARATION is 0, so the option must be set explicitly. */
const byDeclaration = 0n;

/** Returns the reason why the extension is invalid, or undefined when it is valid. */
export function undeclared(
  schema: Schema,
  extendee: DescriptorProto,
  field: FieldDescriptorProto,
  fullName: string,
): string | undefined {
  const { number = 0, label, typeName: named } = field;
  const found = extendee.extensionRange.find(({ start = 0, end = 0 }) => number >= start && number < end);
  const options = decodeOptions(schema, 'ExtensionRangeOptions', found?.options);
  const list = (options?.values.get(range.declaration)?.list ?? []).filter(
    (each) => each instanceof OptionTree,
  );
  if (list.length === 0 && options?.get(range.verification) !== byDeclaration) return undefined;
  const own = list.find((each) => each.integer(declaration.number) === number);
  if (own === undefined) return `${extendee.name} declares no extension with number ${number}`;
  if (own.flag(declaration.reserved)) return `${extendee.name} reserves extension number ${number}`;
  const wantedName = own.get(declaration.fullName);
  if (wantedName !== undefined && wantedName !== `.${fullName}`)
    return `${extendee.name} declares extension number ${number} as ${wantedName}, not .${fullName}`;
  const wantedType = own.get(declaration.type);
  const type = named ?? typeName(field.type);
  if (wantedType !== undefined && wantedType !== type)
    return `${extendee.name} declares extension number ${number} with type ${wantedType}, not ${type}`;
  const repeated = label === labels.repeated;
  if (own.flag(declaration.repeated) !== repeated)
    return `${extendee.name} declares extension number ${number} as ${repeated ? 'not ' : ''}repeated`;
  return undefined;
}
