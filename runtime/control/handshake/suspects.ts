/**
 * How often handshakes of an address have come to nothing of late, or have come again before the time that
 * they were told. While there is a crowd, those of addresses with more of that wait behind the others, so a
 * client that is new gets in although strangers come again and again by the thousand. Nobody is refused for
 * it, and an address of which a handshake succeeds begins anew. Owned by the handshakes of a server, on its
 * JS thread.
 */
import { clockMs } from '../../clock.ts';
import { suspectMs, suspectsMax } from '../../limits.ts';

/** Ranks are the binary orders of the count, so that one client that fails now and then is no stranger. */
export const suspectRanks = 6;

interface Suspect {
  count: number;
  /** It is forgotten then. */
  endMs: number;
  /** When it was told to come again; 0: it was not. */
  appointmentMs: number;
  /** Nobody has come before that time. */
  isExpected: boolean;
}

export class Suspects {
  /** In the order in which they are forgotten. */
  readonly #suspects = new Map<string, Suspect>();

  /**
   * A connection of this address wants a place. Unix sockets ('') are never suspect. Returns whether this is
   * the first one before the time that the address was told: it does not keep its appointment then.
   */
  came(address: string): boolean {
    const known = this.#suspects.get(address);
    if (known === undefined || clockMs() >= known.appointmentMs) return false;
    this.failed(address);
    const isFirst = known.isExpected;
    known.isExpected = false;
    return isFirst;
  }

  /** It was told to come again in `ms`. */
  told(address: string, ms: number): void {
    const known = this.#touch(address);
    if (known === undefined) return;
    known.appointmentMs = clockMs() + ms;
    known.isExpected = true;
  }

  /** A handshake of this address has had a place, and has come to nothing. */
  failed(address: string): void {
    const known = this.#touch(address);
    if (known !== undefined) ++known.count;
  }

  /** A handshake of this address has come to its end. */
  succeeded(address: string): void {
    this.#suspects.delete(address);
  }

  /** 0 for addresses that nothing is known about, up to `suspectRanks - 1`. */
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
      appointmentMs: 0,
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
