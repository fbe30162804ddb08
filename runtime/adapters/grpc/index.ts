/**
 * `rdma-rpc/grpc/server`: handlers of this package on real gRPC, with servers of grpc-js and nice-grpc
 * (optional peer dependencies). It is for servers that have clients of both kinds, and for migrating between
 * this package and gRPC. Generated definitions need no adapter: they work with grpc-js and nice-grpc as they
 * are.
 */
export { type GrpcJsCall, type GrpcJsHandler, type GrpcJsHandlers, toGrpcJsHandlers } from './grpc-js.ts';
export type { GrpcHandlerOptions } from './handlers.ts';
export { type NiceGrpcContext, type NiceGrpcHandlers, toNiceGrpcHandlers } from './nice-grpc.ts';
