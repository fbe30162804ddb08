/** `rdma-rpc/reverse`: calls from a server to its clients, over the connections that the clients have made. */
export type { Peer } from './peer.ts';
export { type Peers, peersOf, type UnaryClient } from './peers.ts';
export { type ReverseOptions, type ReverseServer, serveReverse } from './reverse-server.ts';
