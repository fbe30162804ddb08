/**
 * Checks options that declare where they may be set, by `targets` of the option's field. check.ts calls it
 * for every element that has options, when all options have been read.
 */
import type { FieldDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import { decodeOptions, type OptionField, OptionTree } from '../options/tree.ts';
import type { Schema } from './schema.ts';

/** The field number of FieldOptions.targets. */
const targetsField = 19;

/** The numbers in FieldOptions.OptionTargetType, and their names in error texts. */
const kinds: Readonly<Record<string, readonly [number: number, noun: string]>> = {
  FileOptions: [1, 'file'],
  ExtensionRangeOptions: [2, 'range of extensions'],
  MessageOptions: [3, 'message'],
  FieldOptions: [4, 'field'],
  OneofOptions: [5, 'oneof'],
  EnumOptions: [6, 'enum'],
  EnumValueOptions: [7, 'value of an enum'],
  ServiceOptions: [8, 'service'],
  MethodOptions: [9, 'method'],
};

const known = new WeakMap<FieldDescriptorProto, readonly number[]>();

/** Returns the allowed targets of an option. The list is empty when the option may be set everywhere. */
function targetsOf(schema: Schema, { descriptor }: OptionField): readonly number[] {
  let targets = known.get(descriptor);
  if (targets === undefined) {
    const options = descriptor.options?.length
      ? decodeOptions(schema, 'FieldOptions', descriptor.options)
      : undefined;
    targets = (options?.values.get(targetsField)?.list ?? []).map(Number);
    known.set(descriptor, targets);
  }
  return targets;
}

/** Returns the options that an element must not have. `type` is the type of its options. */
export function misplacedOptions(schema: Schema, type: string, bytes: Uint8Array | undefined): string[] {
  const [number, noun] = kinds[type] ?? [0, ''];
  if (bytes === undefined || bytes.length === 0) return [];
  const faults: string[] = [];
  const visit = (tree: OptionTree): void => {
    for (const { field, list } of tree.values.values()) {
      const targets = targetsOf(schema, field);
      if (targets.length > 0 && !targets.includes(number)) {
        const name = field.extension ?? `${tree.message.fullName}.${field.descriptor.name}`;
        faults.push(`option ${name} cannot be set on a ${noun}`);
      } else for (const value of list) if (value instanceof OptionTree) visit(value);
    }
  };
  const tree = decodeOptions(schema, type, bytes);
  if (tree !== undefined) visit(tree);
  return faults;
}
