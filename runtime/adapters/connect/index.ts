/**
 * `rdma-rpc/connect`: a transport for clients of connect-es, so that unchanged clients call over a channel of
 * this package. It needs `@connectrpc/connect` and `@bufbuild/protobuf`, which are optional peer
 * dependencies. The messages are messages of protobuf-es, which also encodes them.
 */
export { type ConnectTransportOptions, createConnectTransport } from './transport.ts';
