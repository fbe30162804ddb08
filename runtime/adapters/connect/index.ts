/**
 * `rdma-rpc/connect`: a transport for clients of connect-es (`@connectrpc/connect` and `@bufbuild/protobuf`
 * are optional peer dependencies), so that unchanged clients call over a channel of this package. Messages
 * are those of protobuf-es, which also encodes them.
 */
export { type ConnectTransportOptions, createConnectTransport } from './transport.ts';
