/**
 * Connections of each network address that have not been admitted yet. They have places of their own, so that
 * strangers do not use up the sessions of an address which they share with others: beyond
 * `sessionsPerPeerMax` of them the oldest goes, whereas admitted connections are never closed for new ones
 * (server/peer-counts.ts). Owned by the handshakes of a server, on its JS thread.
 */
import { handshakeGraceMs, handshakeWaitMs } from '../../limits.ts';
import { Silent } from './silent.ts';

interface AddressConnections<T> {
  /** The peer has to send its hello, or to go on with TLS. */
  readonly begun: Silent<T>;
  /** The server asks `authenticate`, which may take its time; so these are closed later than the others. */
  readonly asked: Silent<T>;
}

export class Unproved<T> {
  readonly #max: number;
  readonly #sendAway: (one: T, why: string) => void;
  readonly #byAddress = new Map<string, AddressConnections<T>>();

  /** `sendAway`: closes a connection that is not counted any more. */
  constructor(max: number, sendAway: (one: T, why: string) => void) {
    this.#max = max;
    this.#sendAway = sendAway;
  }

  /** Addresses with such connections. */
  get size(): number {
    return this.#byAddress.size;
  }

  /** Counts a connection until `leave`. Without an address (unix sockets) there is nothing to count by. */
  begin(address: string, one: T): void {
    if (address === '') return;
    let known = this.#byAddress.get(address);
    if (known === undefined) {
      const why = `${address} has more than ${this.#max} connections that are not admitted yet (option sessionsPerPeerMax of the server)`;
      const sendAway = (oldest: T): void => this.#sendAway(oldest, why);
      known = {
        begun: new Silent(this.#max, sendAway, handshakeGraceMs),
        asked: new Silent(this.#max, sendAway, handshakeWaitMs),
      };
      this.#byAddress.set(address, known);
    }
    known.begun.add(one);
  }

  /** `authenticate` is being asked about it. */
  ask(address: string, one: T): void {
    const known = this.#byAddress.get(address);
    known?.begun.delete(one);
    known?.asked.add(one);
  }

  /** It has been admitted, or has gone. */
  leave(address: string, one: T): void {
    const known = this.#byAddress.get(address);
    if (known === undefined) return;
    known.begun.delete(one);
    known.asked.delete(one);
    if (known.begun.size + known.asked.size === 0) this.#byAddress.delete(address);
  }
}
