/**
 * Limits the admitted connections of each network address, so that one address cannot use up the sessions of
 * a server.
 */
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
   * Counts a connection until it is closed. Connections without an address (unix sockets) are not counted.
   * Returns an error when there is no room.
   */
  enter(address: string, duplex: Duplex): RpcError | undefined {
    if (address === '') return undefined;
    // A connection that is already closed would otherwise be counted for ever.
    if (duplex.closed) return new RpcError(Status.UNAVAILABLE, 'the connection was closed');
    const full = this.full(address);
    if (full !== undefined) return full;
    const known = this.#byAddress.get(address);
    if (known === undefined) this.#byAddress.set(address, new Set([duplex]));
    else known.add(duplex);
    duplex.once('close', () => this.leave(address, duplex));
    return undefined;
  }

  /** Returns an error when there is no room for another connection. */
  full(address: string): RpcError | undefined {
    const count = this.#byAddress.get(address)?.size ?? 0;
    if (count < this.#max) return undefined;
    const text = `${address} has ${count} connections already (option sessionsPerPeerMax of the server)`;
    return new RpcError(Status.RESOURCE_EXHAUSTED, text);
  }

  /** Number of addresses with connections. */
  get size(): number {
    return this.#byAddress.size;
  }

  /** Returns whether the connection is counted. */
  has(address: string, duplex: Duplex): boolean {
    return this.#byAddress.get(address)?.has(duplex) ?? false;
  }

  /** Runs when the connection is closed or about to be closed. */
  leave(address: string, duplex: Duplex): void {
    const known = this.#byAddress.get(address);
    if (known?.delete(duplex) === true && known.size === 0) this.#byAddress.delete(address);
  }
}
