/** How many admitted connections each network address has to a server, so that one cannot take all places. */
import type { Duplex } from 'node:stream';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';

export class PeerCounts {
  readonly #max: number;
  readonly #counts = new Map<string, number>();

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
    this.#counts.set(address, (this.#counts.get(address) ?? 0) + 1);
    duplex.once('close', () => this.#leave(address));
    return undefined;
  }

  /** Why there is no room for another one. */
  full(address: string): RpcError | undefined {
    const count = this.#counts.get(address) ?? 0;
    if (count < this.#max) return undefined;
    const text = `${address} has ${count} connections already (option sessionsPerPeerMax of the server)`;
    return new RpcError(Status.RESOURCE_EXHAUSTED, text);
  }

  /** Addresses with connections. */
  get size(): number {
    return this.#counts.size;
  }

  #leave(address: string): void {
    const left = this.#counts.get(address)! - 1;
    if (left === 0) this.#counts.delete(address);
    else this.#counts.set(address, left);
  }
}
