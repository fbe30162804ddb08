/**
 * `rdma-rpc/codec`: functions for applications that handle messages, the well-known types, and the types for
 * generic functions over messages, extensions and services. It works without the native addon. Functions
 * called by generated code have an entry point of their own, generated/v1.ts.
 */
export { equals } from './equals.ts';
export { CodecError } from './error.ts';
export type { Extendable, Extension } from './extension.ts';
export type { FileDescriptor } from './file-descriptor.ts';
export * from './google/protobuf/any.rdma.ts';
export * from './google/protobuf/descriptor.rdma.ts';
export * from './google/protobuf/duration.rdma.ts';
export * from './google/protobuf/empty.rdma.ts';
export * from './google/protobuf/field_mask.rdma.ts';
export * from './google/protobuf/struct.rdma.ts';
export * from './google/protobuf/timestamp.rdma.ts';
export * from './google/protobuf/wrappers.rdma.ts';
export { Source } from './memory/source.ts';
export { outOfLineMax, Writer } from './memory/writer.ts';
export { clone, merge } from './merge.ts';
export {
  isMessageType,
  type MessageType,
  type MethodDefinition,
  type MethodOptions,
  type ServiceDefinition,
} from './types.ts';
export type { UnknownFields } from './unknown.ts';
export * from './wkt/index.ts';
