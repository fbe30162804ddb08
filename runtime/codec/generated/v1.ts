/**
 * `rdma-rpc/generated/v1`: everything that generated code imports. Every generated file imports it under the
 * name `$`. Applications do not use it. As long as `v1` exists, its exports keep their meaning. A removed or
 * changed export needs a `v2`; an added export needs a higher `revision`.
 */
export * from '../google/protobuf/any.rdma.ts';
export * from '../google/protobuf/descriptor.rdma.ts';
export * from '../google/protobuf/duration.rdma.ts';
export * from '../google/protobuf/empty.rdma.ts';
export * from '../google/protobuf/field_mask.rdma.ts';
export * from '../google/protobuf/struct.rdma.ts';
export * from '../google/protobuf/timestamp.rdma.ts';
export * from '../google/protobuf/wrappers.rdma.ts';
export * from '../primitives/index.ts';
