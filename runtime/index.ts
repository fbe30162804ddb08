/** The public interface of rdma-rpc. Everything else in this folder is internal. */
export { Channel, type ChannelState, createChannel } from './api/channel.ts';
export type { ChannelOptions } from './api/channel-options.ts';
export { createClient } from './api/client.ts';
export { configure, type RuntimeOptions, stats } from './api/configure.ts';
export type { Fabric, FabricOptions, VerbsSettings } from './api/fabric-options.ts';
export { createInProcessTransport, type InProcessOptions } from './api/in-process.ts';
export { allocBuffer, registerBuffer } from './api/memory.ts';
export { createServer, Server } from './api/server.ts';
export type { ServerOptions } from './api/server-options.ts';
export type { SessionSummary } from './api/session-summary.ts';
export type {
  CallOptions,
  ClientDefaults,
  ClientOf,
  HandlersOf,
  Messages,
  MethodDefaults,
  PortableClientOf,
  PortableOptions,
  StreamOptions,
} from './api/types.ts';
export { type ContextKey, ContextValues, createContextKey } from './call/context-values.ts';
export type {
  Interceptor,
  Next,
  RpcRequest,
  RpcResponse,
  StreamRequest,
  StreamResponse,
  UnaryRequest,
  UnaryResponse,
} from './call/interceptor.ts';
export { type Lease, leaseOf } from './call/lease.ts';
export { Metadata, type MetadataInit, type MetadataValue } from './call/metadata.ts';
export { RpcError, type RpcErrorOptions, type Sent } from './call/rpc-error.ts';
export type { HandlerContext } from './call/server-call.ts';
export { Status, type StatusCode, type StatusName } from './call/status.ts';
export type { ErrorDetail, ErrorDetailInit } from './call/status-details.ts';
export type { AddressSummary } from './channel/connections.ts';
export type { EndpointState } from './channel/endpoint.ts';
export type { HedgingOptions } from './channel/hedging.ts';
export type { Resolver } from './channel/resolver.ts';
export type { RetryOptions } from './channel/retry.ts';
export type { MessageType, MethodDefinition, ServiceDefinition } from './codec/types.ts';
export type { NativeStats } from './native.ts';
export { listenInWorker } from './workers/listen-in-worker.ts';
export {
  serveWorkers,
  type WorkerGroup,
  type WorkerSummary,
  type WorkersOptions,
} from './workers/worker-group.ts';
