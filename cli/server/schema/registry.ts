/**
 * Descriptors of protobuf-es, and look-ups by name. The schemas use this file, and so do the commands that
 * look names up.
 */
import {
  create,
  createFileRegistry,
  type DescEnum,
  type DescExtension,
  type DescMessage,
  type DescMethod,
  type DescriptorProto,
  type DescService,
  type FileDescriptorProto,
  FileDescriptorSetSchema,
  type FileRegistry,
} from '#protobuf';
import { descriptorFaults } from '../../../codegen/descriptor/faults.ts';
import { jsonNameOf } from '../../../runtime/codec/fields.ts';
import { inOrder } from './import-order.ts';

/** All kinds of elements that have their own declaration. */
export type Declared = DescMessage | DescEnum | DescExtension | DescService | DescMethod;

/** Fills in the JSON names, which the descriptors of some servers lack. */
function nameForJson({ field, nestedType }: DescriptorProto): void {
  for (const each of field) if (each.jsonName === '') each.jsonName = jsonNameOf(each.name);
  nestedType.forEach(nameForJson);
}

/** Throws an Error with a sentence when the descriptors contradict each other. */
export function registryOf(files: readonly FileDescriptorProto[]): FileRegistry {
  const file = inOrder(files);
  for (const each of file)
    for (const { message } of descriptorFaults(each))
      throw new Error(`the descriptors cannot be used: ${each.name}: ${message}`);
  for (const { messageType } of file) messageType.forEach(nameForJson);
  try {
    return createFileRegistry(create(FileDescriptorSetSchema, { file }));
  } catch (error) {
    throw new Error(`the descriptors cannot be used: ${(error as Error).message}`);
  }
}

/**
 * Returns the declaration with this full name. For a field or a value, returns the declaration that contains
 * it. Returns undefined when the name does not exist.
 */
export function lookUp(registry: FileRegistry, name: string): Declared | undefined {
  const whole = registry.get(name);
  if (whole !== undefined) return whole;
  const dot = name.lastIndexOf('.');
  const last = name.slice(dot + 1);
  const outer = dot < 0 ? undefined : registry.get(name.slice(0, dot));
  if (outer?.kind === 'service') return outer.methods.find((method) => method.name === last);
  if (outer?.kind === 'message' && [...outer.fields, ...outer.oneofs].some((each) => each.name === last))
    return outer;
  // The names of enum values have the scope of their enum, and are not inside it.
  for (const each of registry) {
    if (each.kind !== 'enum' || !each.values.some((value) => value.name === last)) continue;
    const scope = each.typeName.slice(0, -each.name.length);
    if (`${scope}${last}` === name || `${each.typeName}.${last}` === name) return each;
  }
  return undefined;
}

/**
 * Returns the full names of all elements that can be described. The messages of options are left out. They
 * come with every file that has options, and users rarely look for them.
 */
export function namesIn(registry: FileRegistry): string[] {
  const declared = [...registry].filter(({ file }) => file.proto.name !== 'google/protobuf/descriptor.proto');
  return declared.flatMap((each) =>
    each.kind === 'service'
      ? [each.typeName, ...each.methods.map((method) => `${each.typeName}.${method.name}`)]
      : each.typeName,
  );
}
