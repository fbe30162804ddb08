/**
 * `rdma-rpc/reverse`: calls from a server to its clients, over the clients' own connections.
 */
export { peersOf } from './peers.ts';
export { serveReverse } from './reverse-server.ts';
export type { Peer, Peers, ReverseOptions, ReverseServer, UnaryClient } from './reverse-type.ts';
