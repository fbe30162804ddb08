/** Listens for sideband connections on TCP or a unix socket. Used by a server, one per address. */
import { createServer, type Server, type Socket } from 'node:net';
import { tcpKeepAliveMs } from '../limits.ts';
import { type Address, boundAddress, formatAddress, parseAddress } from './address.ts';
import { UnixPath } from './unix-path.ts';

function listenOn(server: Server, options: object): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

export class Listener {
  readonly #server: Server;
  #path: UnixPath | undefined;
  #closed = false;

  constructor(onConnection: (socket: Socket) => void) {
    this.#server = createServer(
      { noDelay: true, keepAlive: true, keepAliveInitialDelay: tcpKeepAliveMs },
      onConnection,
    );
  }

  /** Returns the address that clients connect to. A socket that a dead process left is replaced. Rejects when it is closed meanwhile. */
  async listen(text: string): Promise<string> {
    const address = parseAddress(text);
    try {
      await this.#bind(address);
    } catch (error) {
      this.#release();
      throw error;
    }
    if (this.#closed) {
      this.#release();
      throw new Error(`listen ${text}: it was shut down meanwhile`);
    }
    // Running out of descriptors must not take the process down: the connection is lost, the server goes on.
    this.#server.on('error', (error) => process.emitWarning(error, 'RdmaRpcWarning'));
    return address.kind === 'unix'
      ? formatAddress(address)
      : boundAddress(this.#server.address(), address.host);
  }

  async #bind(address: Address): Promise<void> {
    if (address.kind === 'tcp') {
      await listenOn(this.#server, { host: address.host, port: address.port });
    } else {
      this.#path = await UnixPath.take(address.path, (path) => listenOn(this.#server, { path }));
    }
  }

  /** Accepts no more connections. Those accepted stay. */
  close(): void {
    this.#closed = true;
    this.#release();
  }

  #release(): void {
    // The path first: whoever finds it must find somebody who listens.
    this.#path?.release();
    this.#path = undefined;
    if (this.#server.listening) this.#server.close();
  }
}
