/**
 * The connections of a server whose handshake is not over. Each has a time limit; so many may have said
 * nothing yet (silent.ts), and so many have spoken and are being served (places.ts). One that `authenticate`
 * is asked about takes no place meanwhile, and goes on at a place that no stranger can have: a slow answer
 * about strangers delays nobody else. Used by a server.
 */
import { Status } from '../../core/errors/status.ts';
import { handshakeStallMs, handshakeWaitMs } from '../../limits.ts';
import type { Link } from '../link.ts';
import { Places, type PlacesOwner } from './places.ts';
import { Silent } from './silent.ts';
import { Unproved } from './unproved.ts';

export interface HandshakeLimits {
  readonly handshakesMax: number;
  readonly sessionsPerPeerMax: number;
  readonly handshakeTimeoutMs: number;
}

interface Handshake {
  readonly timer: NodeJS.Timeout;
  /** Where it comes from; '' for a unix socket. */
  readonly address: string;
}

export class Handshakes {
  readonly #limits: HandshakeLimits;
  readonly #inUse: (link: Link) => boolean;
  readonly #open = new Map<Link, Handshake>();
  readonly #unproved: Unproved<Link>;
  readonly #silent: Silent<Link>;
  /** `authenticate` is asked about them. */
  readonly #asked: Silent<Link>;
  readonly #places: Places<Link>;
  /** Of those that `authenticate` has let in. */
  readonly #provedPlaces: Places<Link>;

  /**
   * `inUse`: the session behind the link has had a request, which counts as the `ready` that may still be on
   * its way.
   */
  constructor(limits: HandshakeLimits, inUse: (link: Link) => boolean) {
    const { handshakesMax, sessionsPerPeerMax } = limits;
    const option = '(option handshakesMax of the server)';
    this.#limits = limits;
    this.#inUse = inUse;
    this.#unproved = new Unproved(sessionsPerPeerMax, (link, why) => this.#refuse(link, why));
    this.#silent = new Silent(handshakesMax, (link) =>
      this.#refuse(link, `more than ${handshakesMax} unfinished handshakes ${option}`),
    );
    this.#asked = new Silent(
      handshakesMax,
      (link) =>
        this.#refuse(link, `more than ${handshakesMax} connections wait for \`authenticate\` ${option}`),
      handshakeWaitMs,
    );
    const owner: PlacesOwner<Link> = {
      awaitedMs: (link) => link.awaitedMs,
      steps: (link) => link.steps,
      sendAway: (link) =>
        this.#refuse(link, `nothing came for ${handshakeStallMs} ms, and other handshakes wait ${option}`),
    };
    this.#places = new Places(handshakesMax, owner);
    this.#provedPlaces = new Places(handshakesMax, owner);
  }

  /** Those under way. */
  get size(): number {
    return this.#open.size;
  }

  begin(link: Link, address: string): void {
    const { handshakeTimeoutMs } = this.#limits;
    const timer = setTimeout(
      () =>
        this.#refuse(
          link,
          `${link.awaits ?? 'no handshake'} within ${handshakeTimeoutMs} ms (option handshakeTimeoutMs of the server)`,
        ),
      handshakeTimeoutMs,
    );
    this.#open.set(link, { timer, address });
    this.#silent.add(link);
    this.#unproved.begin(address, link);
  }

  /**
   * It has said what it wants. Resolves when it is its turn; undefined: now. Throws when too many wait for
   * theirs.
   */
  enter(link: Link): Promise<void> | undefined {
    this.#silent.delete(link);
    return this.#turn(this.#places, link);
  }

  /**
   * What `authenticate` answers about it, when it is its turn to go on. Rejects with what that rejects with,
   * and when the handshake is over by then.
   */
  async whileAsked<T>(link: Link, answer: Promise<T>): Promise<T> {
    this.#places.leave(link);
    this.#asked.add(link);
    this.#unproved.ask(this.#open.get(link)?.address ?? '', link);
    link.awaits = '`authenticate` of the server has not answered';
    let known: T;
    try {
      known = await answer;
    } finally {
      this.#asked.delete(link);
      link.awaits = undefined;
    }
    if (!this.#open.has(link)) throw new Error(link.ended ?? 'the handshake is over');
    await this.#turn(this.#provedPlaces, link);
    return known;
  }

  end(link: Link): void {
    const handshake = this.#open.get(link);
    if (handshake === undefined) return;
    this.#open.delete(link);
    clearTimeout(handshake.timer);
    this.#unproved.leave(handshake.address, link);
    this.#silent.delete(link);
    this.#asked.delete(link);
    this.#places.leave(link);
    this.#provedPlaces.leave(link);
  }

  /** It may have a session. */
  admit(link: Link): void {
    const handshake = this.#open.get(link);
    if (handshake !== undefined) this.#unproved.leave(handshake.address, link);
  }

  /** Ends those that `of` picks. */
  closeAll(reason: string, of: (link: Link) => boolean): void {
    for (const link of [...this.#open.keys()]) if (of(link)) this.#refuse(link, reason, Status.UNAVAILABLE);
  }

  #turn(places: Places<Link>, link: Link): Promise<void> | undefined {
    const turn = places.enter(link);
    if (turn === undefined) return undefined;
    link.awaits = 'no turn among other handshakes';
    return turn.then(() => {
      link.awaits = undefined;
    });
  }

  #refuse(link: Link, message: string, code: number = Status.RESOURCE_EXHAUSTED): void {
    this.end(link);
    if (this.#inUse(link)) return;
    link.close(message, { type: 'refusal', code, message });
  }
}
