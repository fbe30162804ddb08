/**
 * Descriptions of a service's messages for protobuf-es, made from the descriptors in generated files, and
 * which of the messages have rules. Cached per file.
 */
import {
  create,
  createFileRegistry,
  type DescMessage,
  type FileRegistry,
  fromBinary,
  hasOption,
} from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import {
  field as fieldRules,
  message as messageRules,
  oneof as oneofRules,
} from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
import type { FileDescriptor } from '../../codec/file-descriptor.ts';

/** Imports come first. */
function collect(file: FileDescriptor, into: Map<string, FileDescriptor>): void {
  if (into.has(file.name)) return;
  for (const dependency of file.dependencies) collect(dependency, into);
  into.set(file.name, file);
}

const registries = new WeakMap<FileDescriptor, FileRegistry>();

/** Returns the file with all its imports. */
export function registryOf(file: FileDescriptor): FileRegistry {
  let registry = registries.get(file);
  if (registry === undefined) {
    const files = new Map<string, FileDescriptor>();
    collect(file, files);
    const protos = [...files.values()].map(({ bytes }) => fromBinary(FileDescriptorProtoSchema, bytes));
    registry = createFileRegistry(create(FileDescriptorSetSchema, { file: protos }));
    registries.set(file, registry);
  }
  return registry;
}

function ruled(desc: DescMessage, met: Set<DescMessage>): boolean {
  if (met.has(desc)) return false;
  met.add(desc);
  if (hasOption(desc, messageRules) || desc.oneofs.some((each) => hasOption(each, oneofRules))) return true;
  return desc.fields.some((field) => {
    if (hasOption(field, fieldRules)) return true;
    // Also for the elements of lists and the values of maps.
    return field.message !== undefined && ruled(field.message, met);
  });
}

/**
 * Whether the message, or a message inside it, has rules. Others are not checked, which saves encoding them.
 */
export function hasRules(desc: DescMessage): boolean {
  return ruled(desc, new Set());
}
