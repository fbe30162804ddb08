/**
 * Counts, for each address, how many handshakes have recently failed or were retried before the retry-after
 * time. During overload, handshakes from addresses with higher counts wait behind all other handshakes. A new
 * client is therefore accepted even while thousands of unauthenticated peers retry again and again. No
 * address is refused because of its count, and a successful handshake resets the count. A server's Handshakes
 * owns this object, on the JS thread of the server.
 */
import { clockMs } from '../../clock.ts';
import { suspectMs, suspectsMax } from '../../limits.ts';

/**
 * The rank is the binary logarithm of the count, so that a client that fails now and then keeps a low rank.
 */
export const suspectRanks = 6;

interface Suspect {
  count: number;
  /** The time at which the entry is deleted. */
  endMs: number;
  /** The time at which the address was told to retry, or 0 when it was not told to retry. */
  retryAtMs: number;
  /** True as long as no connection of the address has arrived before `retryAtMs`. */
  isExpected: boolean;
}

export class Suspects {
  /** Entries in the order in which they will be deleted. */
  readonly #suspects = new Map<string, Suspect>();

  /**
   * Runs when a connection of this address begins its handshake. Returns true when this connection is the
   * first to arrive before the address's retry-after time. Unix sockets ('') are never suspect.
   */
  came(address: string): boolean {
    const known = this.#suspects.get(address);
    if (known === undefined || clockMs() >= known.retryAtMs) return false;
    this.failed(address);
    const isFirst = known.isExpected;
    known.isExpected = false;
    return isFirst;
  }

  /** Records that the address was told to retry after `ms`. */
  told(address: string, ms: number): void {
    const known = this.#touch(address);
    if (known === undefined) return;
    known.retryAtMs = clockMs() + ms;
    known.isExpected = true;
  }

  /** Records that a handshake of this address was served and has failed. */
  failed(address: string): void {
    const known = this.#touch(address);
    if (known !== undefined) ++known.count;
  }

  /** Records that a handshake of this address has succeeded. */
  succeeded(address: string): void {
    this.#suspects.delete(address);
  }

  /** Returns the rank of an address: 0 for unknown addresses, up to `suspectRanks - 1`. */
  rank(address: string): number {
    const known = this.#suspects.get(address);
    if (known === undefined) return 0;
    if (clockMs() < known.endMs) return Math.min(32 - Math.clz32(known.count), suspectRanks - 1);
    this.#suspects.delete(address);
    return 0;
  }

  #touch(address: string): Suspect | undefined {
    if (address === '') return undefined;
    const known = this.#suspects.get(address) ?? {
      count: 0,
      endMs: 0,
      retryAtMs: 0,
      isExpected: false,
    };
    known.endMs = clockMs() + suspectMs;
    this.#suspects.delete(address);
    this.#suspects.set(address, known);
    if (this.#suspects.size > suspectsMax) {
      const [oldest] = this.#suspects.keys();
      this.#suspects.delete(oldest!);
    }
    return known;
  }
}
