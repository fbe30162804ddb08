/**
 * The common parts of all examples of this folder: a server of sockets on a free address, and a way to run an
 * example by itself.
 */
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createServer, type Socket, type SocketServer, type SocketServerOptions } from 'rdma-rpc/socket';

/** The options that servers of node:http have. A client that has ended its side still gets its answer. */
export const asHttp: SocketServerOptions = { allowHalfOpen: true };

/** Listens on a free port. Resolves with the server and its address, which is used only for the handshake. */
export async function serve(
  onConnection: (socket: Socket) => void,
  options: SocketServerOptions = {},
): Promise<{ readonly server: SocketServer; readonly address: string }> {
  const server = createServer(options, onConnection);
  server.listen('127.0.0.1:0');
  await once(server, 'listening');
  return { server, address: server.where! };
}

/** Ends all connections of a server, and the server. */
export async function stop(server: SocketServer): Promise<void> {
  server.destroyConnections();
  await server[Symbol.asyncDispose]();
}

/** Prints what `run` returns when `url` is the program that Node was started with. */
export async function alone(url: string, run: () => Promise<unknown>): Promise<void> {
  if (process.argv[1] === fileURLToPath(url)) console.log(await run());
}
