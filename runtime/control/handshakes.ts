/**
 * The connections of a server whose handshake is not over. Each has a time limit, all together a count: one more pushes another out, the oldest of those that
 * have said nothing, so that silent connections keep nobody away, however many come. Used by a server.
 */
import { Status } from '../core/errors/status.ts';
import type { Link } from './link.ts';

export interface HandshakeLimits {
  readonly handshakesMax: number;
  readonly handshakeTimeoutMs: number;
}

export class Handshakes {
  readonly #limits: HandshakeLimits;
  readonly #inUse: (link: Link) => boolean;
  /** In order of arrival. */
  readonly #open = new Map<Link, NodeJS.Timeout>();

  /** `inUse`: the session behind the link has had a request, which counts as the `ready` that may still be on its way. */
  constructor(limits: HandshakeLimits, inUse: (link: Link) => boolean) {
    this.#limits = limits;
    this.#inUse = inUse;
  }

  get count(): number {
    return this.#open.size;
  }

  begin(link: Link): void {
    const { handshakesMax, handshakeTimeoutMs } = this.#limits;
    while (this.#open.size > 0 && this.#isFull()) {
      this.#refuse(
        this.#leastWorth(),
        `more than ${handshakesMax} unfinished handshakes (option handshakesMax of the server)`,
      );
    }
    const timer = setTimeout(
      () =>
        this.#refuse(
          link,
          `${link.awaits ?? 'no handshake'} within ${handshakeTimeoutMs} ms (option handshakeTimeoutMs of the server)`,
        ),
      handshakeTimeoutMs,
    );
    this.#open.set(link, timer);
  }

  end(link: Link): void {
    clearTimeout(this.#open.get(link));
    this.#open.delete(link);
  }

  /** Ends those that `of` picks. */
  closeAll(reason: string, of: (link: Link) => boolean): void {
    for (const link of [...this.#open.keys()]) if (of(link)) this.#refuse(link, reason, Status.UNAVAILABLE);
  }

  /**
   * Those that have spoken are counted apart: a client of tcp comes a second time, with a connection that is
   * silent at first, and must push out neither itself nor others that are as far as it is.
   */
  #isFull(): boolean {
    const { handshakesMax } = this.#limits;
    if (this.#open.size < handshakesMax) return false;
    let silent = 0;
    for (const link of this.#open.keys()) if (!link.spoke) ++silent;
    return silent >= handshakesMax || this.#open.size >= 2 * handshakesMax;
  }

  /** The oldest of the silent ones, else of those that TLS has not let speak yet, else of all. */
  #leastWorth(): Link {
    let oldest: Link | undefined;
    let securing: Link | undefined;
    for (const link of this.#open.keys()) {
      if (!link.spoke && !link.secures) return link;
      if (!link.spoke) securing ??= link;
      oldest ??= link;
    }
    return securing ?? oldest!;
  }

  #refuse(link: Link, message: string, code: number = Status.RESOURCE_EXHAUSTED): void {
    this.end(link);
    if (this.#inUse(link)) return;
    link.close(message, { type: 'refusal', code, message });
  }
}
