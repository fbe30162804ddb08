/**
 * Listens for sideband connections on TCP or on a unix socket. Peers cannot send descriptors over the unix
 * socket (unix-socket.ts). A server has one listener per address.
 */

import { createServer, type Server, type Socket } from 'node:net';
import { inRoot } from '../../core/scopes.ts';
import { listenBacklog, tcpKeepAliveMs } from '../../limits.ts';
import { type Address, boundAddress, formatAddress, parseAddress } from './address.ts';
import { type SocketFile, UnixPath } from './unix-path.ts';
import { guardListener, mustRelay, relayed } from './unix-socket.ts';

function listenOn(server: Server, options: object): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/**
 * Throws when Node's permissions do not allow network access. From Node 26 on, listening on an IP address
 * without permission would throw an error that the caller cannot catch and that ends the process.
 */
function checkNetAllowed(text: string): void {
  const { permission } = process as { permission?: { has(scope: string): boolean } };
  if (permission === undefined || !process.allowedNodeEnvironmentFlags.has('--allow-net')) return;
  if (permission.has('net')) return;
  throw new Error(
    `listen ${text}: Node runs with --permission, which allows no network: start it with --allow-net, too`,
  );
}

export class Listener {
  readonly #onConnection: (socket: Socket) => void;
  readonly #file: SocketFile;
  #server: Server | undefined;
  #path: UnixPath | undefined;
  #closed = false;

  /** `file` has the mode and the owner that a unix socket gets. */
  constructor(onConnection: (socket: Socket) => void, file: SocketFile = {}) {
    this.#onConnection = onConnection;
    this.#file = file;
  }

  /**
   * Begins to listen. Resolves with the address that clients connect to. Replaces a socket that a dead
   * process has left. Rejects when `close` is called in the meantime.
   */
  async listen(text: string): Promise<string> {
    const address = parseAddress(text);
    if (address.kind !== 'unix') checkNetAllowed(text);
    const server = this.#made(address);
    this.#server = server;
    try {
      // Listens in the root context, because the connections do not belong to the caller of this function.
      await inRoot(this.#bind, this, server, address);
    } catch (error) {
      this.#release();
      throw error;
    }
    if (this.#closed) {
      this.#release();
      throw new Error(`listen ${text}: the server was shut down`);
    }
    // An error such as a lack of descriptors must not end the process. The connection is lost, and the server
    // goes on.
    server.on('error', (error) => process.emitWarning(error, 'RdmaRpcWarning'));
    return address.kind === 'unix' ? formatAddress(address) : boundAddress(server.address(), address.host);
  }

  #made(address: Address): Server {
    if (address.kind === 'tcp') {
      const keepAlive = { noDelay: true, keepAlive: true, keepAliveInitialDelay: tcpKeepAliveMs };
      return createServer(keepAlive, (socket) => {
        // A connection that was reset before it was accepted is closed here. It no longer has an address, and
        // would therefore be treated as a unix socket, to which TLS and the limits per address do not apply.
        if (socket.remoteAddress === undefined) socket.destroy();
        else this.#onConnection(socket);
      });
    }
    if (!mustRelay()) return createServer(this.#onConnection);
    return createServer({ pauseOnConnect: true }, (socket) => {
      const safe = relayed(socket);
      if (safe !== undefined) this.#onConnection(safe);
    });
  }

  async #bind(server: Server, address: Address): Promise<void> {
    if (address.kind === 'tcp') {
      await listenOn(server, { host: address.host, port: address.port, backlog: listenBacklog });
    } else {
      const listenAt = async (path: string): Promise<void> => {
        await listenOn(server, { path, backlog: listenBacklog });
        // The socket refuses descriptors from here on, before it gets its public path.
        guardListener(path);
      };
      this.#path = await UnixPath.take(address.path, listenAt, this.#file);
    }
  }

  /** Accepts no more connections. Accepted connections stay open. */
  close(): void {
    this.#closed = true;
    this.#release();
  }

  #release(): void {
    // The path is removed first, because a client that finds the path must also find a listening socket.
    this.#path?.release();
    this.#path = undefined;
    if (this.#server?.listening === true) this.#server.close();
  }
}
