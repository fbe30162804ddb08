/** Listens for sideband connections on TCP or a unix socket. Used by a server, one per address. */
import { unlinkSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tcpKeepAliveMs } from '../limits.ts';
import { boundAddress, parseAddress } from './address.ts';

function listenOn(server: Server, options: object): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** True if the socket file is left over from a process that is gone. */
function isStale(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect({ path });
    probe.once('connect', () => {
      probe.destroy();
      resolve(false);
    });
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  });
}

export class Listener {
  readonly #server: Server;

  constructor(onConnection: (socket: Socket) => void) {
    this.#server = createServer(
      { noDelay: true, keepAlive: true, keepAliveInitialDelay: tcpKeepAliveMs },
      onConnection,
    );
  }

  /** Returns the address that clients connect to. A socket file left by a dead process is replaced. */
  async listen(text: string): Promise<string> {
    const address = parseAddress(text);
    if (address.kind === 'tcp') {
      await listenOn(this.#server, { host: address.host, port: address.port });
    } else {
      try {
        await listenOn(this.#server, { path: address.path });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || !(await isStale(address.path)))
          throw error;
        unlinkSync(address.path);
        await listenOn(this.#server, { path: address.path });
      }
    }
    // Running out of descriptors must not take the process down: the connection is lost, the server goes on.
    this.#server.on('error', (error) => process.emitWarning(error, 'RdmaRpcWarning'));
    return boundAddress(this.#server.address());
  }

  /** Accepts no more connections. Those accepted stay. */
  close(): void {
    if (this.#server.listening) this.#server.close();
  }
}
