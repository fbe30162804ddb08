/** Something between a client and its servers that passes bytes on, as a proxy, a tunnel or a balancer does: for the tests of this folder. */
import { connect, createServer, type Server, type Socket } from 'node:net';

export interface Passage {
  /** 0 for the sideband, 1 for what comes after it. */
  readonly index: number;
  readonly client: Socket;
  readonly server: Socket;
}

export class Relay {
  /** Connections that have come. */
  count = 0;
  readonly #server: Server;
  readonly #open = new Set<Socket>();

  /** `lead`: the port to which the next connection goes. `onPassage`: may cut it. */
  constructor(lead: (index: number) => number, onPassage: (passage: Passage) => void = () => undefined) {
    this.#server = createServer((client) => {
      const index = this.count++;
      const server = connect(lead(index), '127.0.0.1');
      for (const [one, other] of [
        [client, server],
        [server, client],
      ] as const) {
        this.#open.add(one);
        one.on('error', () => undefined);
        one.on('close', () => {
          this.#open.delete(one);
          other.destroy();
        });
        one.pipe(other);
      }
      onPassage({ index, client, server });
    });
  }

  listen(): Promise<string> {
    return new Promise((resolve) => {
      this.#server.listen(0, '127.0.0.1', () => {
        resolve(`127.0.0.1:${(this.#server.address() as { port: number }).port}`);
      });
    });
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#open) socket.destroy();
  }
}

export const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(':') + 1));
