/**
 * `rdma-rpc/socket`: sockets as in `node:net`, each a stream of a session. For programs that know sockets and
 * not calls: HTTP, database clients, TLS.
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
