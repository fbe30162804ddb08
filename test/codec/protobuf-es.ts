/**
 * Runs protobuf-es on the corpus, with types that are created from the descriptors in our generated files.
 * The comparisons with protobuf-es share it.
 */
import {
  create,
  createFileRegistry,
  type DescMessage,
  type FileRegistry,
  fromBinary,
  type Message,
} from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import type { FileDescriptor } from 'rdma-rpc/codec';
import { modules } from './corpus.ts';

function isDescriptor(value: unknown): value is FileDescriptor {
  return typeof value === 'object' && value !== null && 'dependencies' in value && 'bytes' in value;
}

/** Collects a file after its imports. */
function collect(file: FileDescriptor, into: Map<string, FileDescriptor>): void {
  if (into.has(file.name)) return;
  for (const dependency of file.dependencies) collect(dependency, into);
  into.set(file.name, file);
}

/** Returns the descriptors of all files from which generated modules come. */
export function registryOf(modules: readonly Readonly<Record<string, unknown>>[]): FileRegistry {
  const files = new Map<string, FileDescriptor>();
  for (const module of modules)
    for (const value of Object.values(module)) if (isDescriptor(value)) collect(value, files);
  const file = [...files.values()].map(({ bytes }) => fromBinary(FileDescriptorProtoSchema, bytes));
  return createFileRegistry(create(FileDescriptorSetSchema, { file }));
}

export const registry = registryOf(modules);

export type EsMessage = Message;

export function esType(typeName: string): DescMessage {
  const type = registry.getMessage(typeName);
  if (type === undefined) throw new Error(`protobuf-es does not have ${typeName}`);
  return type;
}
