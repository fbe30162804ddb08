/**
 * `rdma-rpc/grpc/server`: handlers of this package on real gRPC, with servers of grpc-js and nice-grpc
 * (optional peer dependencies). For servers with clients of both kinds, and for migrating between the two.
 * Generated definitions work with grpc-js and nice-grpc as they are, so they need no adapter.
 */
export { type GrpcJsCall, type GrpcJsHandler, type GrpcJsHandlers, toGrpcJsHandlers } from './grpc-js.ts';
export type { GrpcHandlerOptions } from './handlers.ts';
export { type NiceGrpcContext, type NiceGrpcHandlers, toNiceGrpcHandlers } from './nice-grpc.ts';
