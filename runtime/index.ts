/** The public interface of rdma-rpc. Everything else in this folder is internal. */
export { createChannel } from './client/channel.ts';
export type { ChannelOptions } from './client/channel-options.ts';
export type { Channel, ChannelState, ChannelStateListener } from './client/channel-type.ts';
export { createClient } from './client/client.ts';
export type { MethodConfig, ServiceConfig } from './client/config/service-config.ts';
export type { EndpointState } from './client/connections/endpoint.ts';
export type { OutlierDetection } from './client/connections/outliers.ts';
export type { ConsistentHash, LoadReports } from './client/connections/policies.ts';
export type { Resolver } from './client/connections/resolver.ts';
export type { AddressSummary } from './client/connections/server-group.ts';
export type { ServerAddress } from './client/connections/servers.ts';
export type { Subset } from './client/connections/subset-id.ts';
export type { Credentials, CredentialsSource, GivenCredentials } from './client/credentials.ts';
export { allocBuffer, registerBuffer } from './client/memory.ts';
export type { MessageType, MethodDefinition, ServiceDefinition } from './codec/types.ts';
export { configure, type RuntimeOptions, stats } from './control/configure.ts';
export type { FabricOptions, VerbsSettings } from './control/fabric-options.ts';
export type { SecurityLevel, SecurityOptions } from './control/security-level.ts';
export type { SessionSummary } from './control/session-summary.ts';
export type {
  ChannelTls,
  Pem,
  ServerTls,
  TlsFiles,
  TlsMaterial,
  TlsSource,
} from './control/tls/tls-options.ts';
export { tlsFiles } from './control/tls/tls-options.ts';
export type { ChannelTotals } from './core/channel-totals.ts';
export { type ContextKey, ContextValues, createContextKey } from './core/context-values.ts';
export { type Processed, RpcError, type RpcErrorOptions } from './core/errors/rpc-error.ts';
export { Status, type StatusCode, type StatusName, statusName } from './core/errors/status.ts';
export type { ErrorDetail, ErrorDetailInit } from './core/errors/status-details.ts';
export type { HandlerContext } from './core/handler-context.ts';
export type { HealthCheck } from './core/health-check.ts';
export type {
  Interceptor,
  Next,
  RpcRequest,
  RpcResponse,
  StreamRequest,
  StreamResponse,
  UnaryRequest,
  UnaryResponse,
} from './core/interceptor.ts';
export { keep, type Lease, leaseOf } from './core/lease.ts';
export type { LoadReport } from './core/load-report.ts';
export { Metadata, type MetadataInit, type MetadataValue } from './core/metadata.ts';
export type { PeerInfo } from './core/peer.ts';
export type { HedgingOptions, RetryOptions } from './core/repeat-options.ts';
export type {
  CallOptions,
  Client,
  ClientDefaults,
  Handlers,
  Messages,
  MethodDefaults,
  PortableClient,
  PortableOptions,
  StreamOptions,
} from './core/types.ts';
export type { Fabric } from './fabrics.ts';
export { createInProcessChannel, type InProcessOptions, type InProcessServer } from './in-process.ts';
export type { Stats } from './native/native.ts';
export type { AllowedPeers, Authenticate } from './server/allowed.ts';
export type { AuthorizeFunction, AuthorizeTable, DeniedCall } from './server/authorize.ts';
export type { AcceptedSession, OnSession, RefusedSession } from './server/connection-attempt.ts';
export type { Quotas, QuotasOf } from './server/quotas.ts';
export { reportLoad } from './server/report-load.ts';
export { createServer } from './server/server.ts';
export type { ServerOptions } from './server/server-options.ts';
export type { Server, ServiceScope } from './server/server-type.ts';
