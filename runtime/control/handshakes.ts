/**
 * The connections of a server whose handshake is not over. Each has a time limit; so many may have said nothing yet (silent.ts), and so many have spoken and are
 * being served (places.ts). Used by a server.
 */
import { Status } from '../core/errors/status.ts';
import { handshakeStallMs } from '../limits.ts';
import type { Link } from './link.ts';
import { Places } from './places.ts';
import { Silent } from './silent.ts';

export interface HandshakeLimits {
  readonly handshakesMax: number;
  readonly handshakeTimeoutMs: number;
}

export class Handshakes {
  readonly #limits: HandshakeLimits;
  readonly #inUse: (link: Link) => boolean;
  readonly #open = new Map<Link, NodeJS.Timeout>();
  readonly #silent: Silent<Link>;
  readonly #places: Places<Link>;

  /** `inUse`: the session behind the link has had a request, which counts as the `ready` that may still be on its way. */
  constructor(limits: HandshakeLimits, inUse: (link: Link) => boolean) {
    const { handshakesMax } = limits;
    const option = '(option handshakesMax of the server)';
    this.#limits = limits;
    this.#inUse = inUse;
    this.#silent = new Silent(handshakesMax, (link) =>
      this.#refuse(link, `more than ${handshakesMax} unfinished handshakes ${option}`),
    );
    this.#places = new Places(handshakesMax, {
      awaitedMs: (link) => link.awaitedMs,
      sendAway: (link) =>
        this.#refuse(link, `nothing came for ${handshakeStallMs} ms, and other handshakes wait ${option}`),
    });
  }

  /** Those under way. */
  get size(): number {
    return this.#open.size;
  }

  begin(link: Link): void {
    const { handshakeTimeoutMs } = this.#limits;
    const timer = setTimeout(
      () =>
        this.#refuse(
          link,
          `${link.awaits ?? 'no handshake'} within ${handshakeTimeoutMs} ms (option handshakeTimeoutMs of the server)`,
        ),
      handshakeTimeoutMs,
    );
    this.#open.set(link, timer);
    this.#silent.add(link);
  }

  /** It has said what it wants. Resolves when it is its turn; undefined: now. Throws when too many wait for theirs. */
  enter(link: Link): Promise<void> | undefined {
    this.#silent.delete(link);
    const turn = this.#places.enter(link);
    if (turn === undefined) return undefined;
    link.awaits = 'no turn among other handshakes';
    return turn.then(() => {
      link.awaits = undefined;
    });
  }

  end(link: Link): void {
    clearTimeout(this.#open.get(link));
    this.#open.delete(link);
    this.#silent.delete(link);
    this.#places.leave(link);
  }

  /** Ends those that `of` picks. */
  closeAll(reason: string, of: (link: Link) => boolean): void {
    for (const link of [...this.#open.keys()]) if (of(link)) this.#refuse(link, reason, Status.UNAVAILABLE);
  }

  #refuse(link: Link, message: string, code: number = Status.RESOURCE_EXHAUSTED): void {
    this.end(link);
    if (this.#inUse(link)) return;
    link.close(message, { type: 'refusal', code, message });
  }
}
