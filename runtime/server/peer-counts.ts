/** How many admitted connections each network address has to a server, so that one cannot take all places. */
import type { Duplex } from 'node:stream';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';

export class PeerCounts {
  readonly #max: number;
  readonly #byAddress = new Map<string, Set<Duplex>>();

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Counts a connection until it is closed. Without an address (unix sockets) there is nothing to count by.
   * Returns why there is no room.
   */
  enter(address: string, duplex: Duplex): RpcError | undefined {
    if (address === '') return undefined;
    // It would be counted for ever.
    if (duplex.closed) return new RpcError(Status.UNAVAILABLE, 'the connection was closed');
    const full = this.full(address);
    if (full !== undefined) return full;
    const known = this.#byAddress.get(address);
    if (known === undefined) this.#byAddress.set(address, new Set([duplex]));
    else known.add(duplex);
    duplex.once('close', () => this.leave(address, duplex));
    return undefined;
  }

  /** Why there is no room for another one. */
  full(address: string): RpcError | undefined {
    const count = this.#byAddress.get(address)?.size ?? 0;
    if (count < this.#max) return undefined;
    const text = `${address} has ${count} connections already (option sessionsPerPeerMax of the server)`;
    return new RpcError(Status.RESOURCE_EXHAUSTED, text);
  }

  /** Addresses with connections. */
  get size(): number {
    return this.#byAddress.size;
  }

  /** The connection is counted. */
  has(address: string, duplex: Duplex): boolean {
    return this.#byAddress.get(address)?.has(duplex) ?? false;
  }

  /** It is closed, or about to be. */
  leave(address: string, duplex: Duplex): void {
    const known = this.#byAddress.get(address);
    if (known?.delete(duplex) === true && known.size === 0) this.#byAddress.delete(address);
  }
}
