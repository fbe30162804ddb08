/**
 * `rdma-rpc/generated/v1`: what generated code imports, the `$` of every generated file. Not for
 * applications. What stands here stays as it is as long as there is a `v1`: with what is taken away or
 * changes its meaning comes a `v2`, and with what is added a higher `revision`.
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
