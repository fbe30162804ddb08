/**
 * Runs a relay between a client and its servers that passes bytes on, as a proxy, a tunnel or a balancer
 * does. The tests of this folder use it.
 */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { setTimeout } from 'node:timers/promises';

export interface Passage {
  /** The value is 0 for the sideband connection, and 1 for the connection after it. */
  readonly index: number;
  readonly client: Socket;
  readonly server: Socket;
}

/** Forwards bytes after a delay, independent of the number of bytes that arrive during the delay. */
class Delay extends Duplex {
  readonly #ms: number;

  constructor(ms: number) {
    super();
    this.#ms = ms;
  }

  override _write(chunk: Uint8Array, _: BufferEncoding, done: () => void): void {
    void setTimeout(this.#ms).then(() => this.push(chunk));
    done();
  }

  override _final(done: () => void): void {
    void setTimeout(this.#ms).then(() => this.push(null));
    done();
  }

  override _read(): void {}
}

export class Relay {
  /** Number of connections so far. */
  count = 0;
  readonly #server: Server;
  readonly #open = new Set<Socket>();

  /**
   * `lead` returns the port to which the next connection goes. `onPassage` may cut the connection.
   * `roundTripMs` is the round-trip time to the servers.
   */
  constructor(
    lead: (index: number) => number,
    onPassage: (passage: Passage) => void = () => undefined,
    roundTripMs = 0,
  ) {
    this.#server = createServer(async (client) => {
      const index = this.count++;
      client.on('error', () => undefined);
      // The first round trip is that of TCP.
      if (roundTripMs !== 0) await setTimeout(roundTripMs);
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
        if (roundTripMs === 0) one.pipe(other);
        else one.pipe(new Delay(roundTripMs / 2)).pipe(other);
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
