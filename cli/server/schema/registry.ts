/**
 * Descriptors as protobuf-es has them, and what has which name among them. Used by the schemas and by the
 * commands that look names up.
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

/** What has a declaration of its own to show. */
export type Declared = DescMessage | DescEnum | DescExtension | DescService | DescMethod;

/** Not every server's descriptors have the names that JSON uses. */
function nameForJson({ field, nestedType }: DescriptorProto): void {
  for (const each of field) if (each.jsonName === '') each.jsonName = jsonNameOf(each.name);
  nestedType.forEach(nameForJson);
}

/** Throws an Error with one sentence where the descriptors contradict each other. */
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

/** What has that full name; of a field or a value, what it is declared in. Undefined: nothing. */
export function lookUp(registry: FileRegistry, name: string): Declared | undefined {
  const whole = registry.get(name);
  if (whole !== undefined) return whole;
  const dot = name.lastIndexOf('.');
  const last = name.slice(dot + 1);
  const outer = dot < 0 ? undefined : registry.get(name.slice(0, dot));
  if (outer?.kind === 'service') return outer.methods.find((method) => method.name === last);
  if (outer?.kind === 'message' && [...outer.fields, ...outer.oneofs].some((each) => each.name === last))
    return outer;
  // Values of an enum have names beside it, not in it.
  for (const each of registry) {
    if (each.kind !== 'enum' || !each.values.some((value) => value.name === last)) continue;
    const scope = each.typeName.slice(0, -each.name.length);
    if (`${scope}${last}` === name || `${each.typeName}.${last}` === name) return each;
  }
  return undefined;
}

/**
 * Full names of all that can be described, but for what options are made of: it is there beside whatever has
 * options, and hardly ever meant.
 */
export function namesIn(registry: FileRegistry): string[] {
  const declared = [...registry].filter(({ file }) => file.proto.name !== 'google/protobuf/descriptor.proto');
  return declared.flatMap((each) =>
    each.kind === 'service'
      ? [each.typeName, ...each.methods.map((method) => `${each.typeName}.${method.name}`)]
      : each.typeName,
  );
}
