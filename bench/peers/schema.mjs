// bench.proto for protobufjs and protobuf-es. Every module of this folder uses this file.
import { fileURLToPath } from 'node:url';
import { createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import protobuf from 'protobufjs';
import descriptor from 'protobufjs/ext/descriptor/index.js';

const root = await new protobuf.Root().load(fileURLToPath(new URL('../bench.proto', import.meta.url)), {
  keepCase: true,
});

/** protobufjs's reflected type. Its first use compiles the same code as its static generator writes. */
export const Msg = root.lookupType('bench.v1.Msg');

/** Returns protobuf-es's service description, created from the same file without protoc. */
export function benchService() {
  const bytes = descriptor.FileDescriptorSet.encode(root.toDescriptor('proto3')).finish();
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes)).getService('bench.v1.Bench');
}

/** Converts 64-bit integers, which protobufjs returns as Long objects. */
export function numberOf(id) {
  return typeof id === 'number' ? id : id.toNumber();
}
