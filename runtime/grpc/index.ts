/**
 * `rdma-rpc/grpc`: generated services over real gRPC, with grpc-js and nice-grpc (optional peer dependencies). For servers that have clients of
 * both kinds, and for moving from one to the other.
 */
export { type GrpcDefinition, type GrpcMethod, toGrpcDefinition } from './definition.ts';
export { type GrpcCallContext, type GrpcImplementation, toGrpcImplementation } from './implementation.ts';
