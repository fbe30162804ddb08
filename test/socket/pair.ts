/** Opens a pair of connected sockets of rdma-rpc/socket, for tests. */
import { once } from 'node:events';
import {
  type ConnectOptions,
  connect,
  createServer,
  type Socket,
  type SocketServer,
  type SocketServerOptions,
} from 'rdma-rpc/socket';

export interface Pair extends AsyncDisposable {
  readonly client: Socket;
  readonly server: Socket;
  readonly sockets: SocketServer;
}

export async function listening(options: SocketServerOptions = {}): Promise<SocketServer> {
  const sockets = createServer(options);
  sockets.listen('127.0.0.1:0');
  await once(sockets, 'listening');
  return sockets;
}

export async function pair(ofClient: ConnectOptions = {}, ofServer: SocketServerOptions = {}): Promise<Pair> {
  const sockets = await listening(ofServer);
  const client = connect(sockets.where!, ofClient);
  const [[server]] = (await Promise.all([
    once(sockets, 'connection'),
    once(client, 'connect'),
  ])) as unknown as [[Socket], unknown];
  return {
    client,
    server,
    sockets,
    [Symbol.asyncDispose]: async () => {
      client.destroy();
      sockets.destroyConnections();
      await sockets[Symbol.asyncDispose]();
    },
  };
}

/**
 * Resolves with the code and system call of the socket's error, or `none` when it closes without an error.
 */
export function errorOf(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.once('error', (error: NodeJS.ErrnoException) =>
      resolve(`${error.code} ${error.syscall ?? ''}`.trim()),
    );
    socket.once('close', () => resolve('none'));
  });
}
