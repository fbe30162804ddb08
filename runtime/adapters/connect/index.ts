/**
 * `rdma-rpc/connect`: a transport for clients of connect-es (`@connectrpc/connect` and `@bufbuild/protobuf`
 * are optional peer dependencies), so that they call over a channel of this package without being changed.
 * Messages are those of protobuf-es, encoded by it.
 */
export { type ConnectTransportOptions, createConnectTransport } from './transport.ts';
