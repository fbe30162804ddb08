/**
 * Counts the connections of each network address that are not admitted yet. They are counted separately from
 * sessions, so that unauthenticated peers do not use up the sessions of an address that they share with
 * clients. When an address has more than `sessionsPerPeerMax` such connections, the oldest connection is
 * closed. Admitted connections are never closed for new connections (server/peer-counts.ts). A server's
 * Handshakes owns this object, on the JS thread of the server.
 */
import { handshakeGraceMs, handshakeWaitMs } from '../../limits.ts';
import { Silent } from './silent.ts';

interface AddressConnections<T> {
  /** Connections whose peer must send its hello, or continue with TLS. */
  readonly begun: Silent<T>;
  /**
   * Connections that wait for a decision of `authenticate`. The decision may take long, so these connections
   * are closed only when `begun` is empty.
   */
  readonly asked: Silent<T>;
}

export class Unadmitted<T> {
  readonly #max: number;
  readonly #evict: (one: T, why: string) => void;
  readonly #byAddress = new Map<string, AddressConnections<T>>();

  /** `evict` closes a connection, which has already been removed. */
  constructor(max: number, evict: (one: T, why: string) => void) {
    this.#max = max;
    this.#evict = evict;
  }

  /** Number of addresses that have unadmitted connections. */
  get size(): number {
    return this.#byAddress.size;
  }

  /** Counts a connection until `leave`. Connections without an address (unix sockets) are not counted. */
  begin(address: string, one: T): void {
    if (address === '') return;
    let known = this.#byAddress.get(address);
    if (known === undefined) {
      const why = `${address} has more than ${this.#max} connections that are not admitted yet (option sessionsPerPeerMax of the server)`;
      const evict = (oldest: T): void => this.#evict(oldest, why);
      known = {
        begun: new Silent(this.#max, evict, handshakeGraceMs),
        asked: new Silent(this.#max, evict, handshakeWaitMs),
      };
      this.#byAddress.set(address, known);
    }
    known.begun.add(one);
  }

  /** Runs when `authenticate` begins to decide about the connection. */
  ask(address: string, one: T): void {
    const known = this.#byAddress.get(address);
    known?.begun.delete(one);
    known?.asked.add(one);
  }

  /** Runs when the connection has been admitted or has ended. */
  leave(address: string, one: T): void {
    const known = this.#byAddress.get(address);
    if (known === undefined) return;
    known.begun.delete(one);
    known.asked.delete(one);
    if (known.begun.size + known.asked.size === 0) this.#byAddress.delete(address);
  }
}
