/**
 * Makes descriptions of a service's messages for protobuf-es from the descriptors in generated files, and
 * determines which of the messages have rules. The results are cached per file.
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

/** Adds a file to `into`, after the files that it imports. */
function collect(file: FileDescriptor, into: Map<string, FileDescriptor>): void {
  if (into.has(file.name)) return;
  for (const dependency of file.dependencies) collect(dependency, into);
  into.set(file.name, file);
}

const registries = new WeakMap<FileDescriptor, FileRegistry>();

/** Returns a registry with the file and all its imports. */
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
    // The search includes the elements of lists and the values of maps.
    return field.message !== undefined && ruled(field.message, met);
  });
}

/**
 * Returns whether the message, or a message inside it, has rules. Other messages are not checked, so they
 * need not be encoded.
 */
export function hasRules(desc: DescMessage): boolean {
  return ruled(desc, new Set());
}
