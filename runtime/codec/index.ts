/**
 * `rdma-rpc/codec`: the types that generated code and applications share, the well-known types, and the primitives that
 * generated code calls. Works without the native addon.
 */
export { equals } from './equals.ts';
export { CodecError } from './error.ts';
export * from './google/protobuf/any.rdma.ts';
export * from './google/protobuf/descriptor.rdma.ts';
export * from './google/protobuf/duration.rdma.ts';
export * from './google/protobuf/empty.rdma.ts';
export * from './google/protobuf/field_mask.rdma.ts';
export * from './google/protobuf/struct.rdma.ts';
export * from './google/protobuf/timestamp.rdma.ts';
export * from './google/protobuf/wrappers.rdma.ts';
export { clone, merge } from './merge.ts';
export * from './primitives.ts';
export { holesMax, Sink } from './sink.ts';
export { Source } from './source.ts';
export { isMessageType } from './types.ts';
export * from './wkt/index.ts';
