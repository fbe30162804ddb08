/**
 * The connector for `iovalkey` and `ioredis`: `new Redis({ Connector: rdmaConnector(open) })`. Both libraries
 * take a class that gives them a stream in place of a socket, and require nothing else of it.
 */
import type { Duplex } from 'node:stream';

/** Time in ms that a stream has to close by itself. After this time it is destroyed. */
const closeMs = 2000;

/** The interface that the client libraries require of a connector. */
export interface Connector {
  firstError?: Error;
  /** The library calls it for each new connection. */
  connect(report: (type: string, error: Error) => void): Promise<Duplex>;
  disconnect(): void;
  /** Returns whether a server with this INFO may be used. */
  check(): boolean;
}

export function rdmaConnector(open: () => Promise<Duplex>): new () => Connector {
  return class implements Connector {
    firstError?: Error;
    #connecting = false;
    #stream: Duplex | undefined;

    async connect(): Promise<Duplex> {
      this.#connecting = true;
      try {
        const stream = await open();
        // The library has cancelled the attempt meanwhile.
        if (!this.#connecting) {
          stream.destroy();
          throw new Error('Connection is closed.');
        }
        this.#stream = stream;
        return stream;
      } catch (error) {
        this.firstError = error as Error;
        throw error;
      }
    }
    disconnect(): void {
      this.#connecting = false;
      const stream = this.#stream;
      if (stream === undefined) return;
      const late = setTimeout(() => stream.destroy(), closeMs);
      stream.once('close', () => clearTimeout(late));
      stream.end();
    }
    check(): boolean {
      return true;
    }
  };
}
