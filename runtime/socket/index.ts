/**
 * `rdma-rpc/socket`: sockets with the interface of `node:net`, each carried by a stream of a session. They
 * are for programs that use sockets and not calls, such as HTTP, database clients and TLS.
 */
export { type ConnectOptions, connect } from './connect.ts';
export type { OnRead } from './on-read.ts';
export type { SocketAddress } from './place.ts';
export {
  addSockets,
  type CreateServerOptions,
  createServer,
  SocketServer,
  type SocketServerEvents,
  type SocketServerOptions,
} from './server.ts';
export { Socket } from './socket.ts';
export type { SocketOptions } from './socket-type.ts';
