/**
 * `rdma-rpc/grpc`: handlers of this package on real gRPC, with servers of grpc-js and nice-grpc (optional
 * peer dependencies). For servers that have clients of both kinds, and for moving from one to the other.
 * Definitions need nothing of it: generated ones are those of grpc-js and nice-grpc too.
 */
export { type GrpcJsCall, type GrpcJsHandler, type GrpcJsHandlers, toGrpcJsHandlers } from './grpc-js.ts';
export type { GrpcHandlerOptions } from './handlers.ts';
export { type NiceGrpcContext, type NiceGrpcHandlers, toNiceGrpcHandlers } from './nice-grpc.ts';
