/**
 * The connections of a server whose handshake is not over. Each has a time limit; so many may have said
 * nothing yet (silent.ts), and so many have spoken and are being served (places.ts). One that `authenticate`
 * is asked about takes no place meanwhile, and goes on at a place that no stranger can have: a slow answer
 * about strangers delays nobody else. Used by a server.
 */
import { pushback } from '../../core/errors/pushback.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { handshakeGraceMs, handshakeStallMs, handshakeWaitMs } from '../../limits.ts';
import type { Link } from '../link.ts';
import { Places, type PlacesOwner } from './places.ts';
import { Silent } from './silent.ts';
import { Suspects } from './suspects.ts';
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
  /** It has had a place. */
  wasServed: boolean;
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
  readonly #suspects = new Suspects();

  /**
   * `inUse`: the session behind the link has had a request, which counts as the `ready` that may still be on
   * its way.
   */
  constructor(limits: HandshakeLimits, inUse: (link: Link) => boolean) {
    const { handshakesMax, sessionsPerPeerMax } = limits;
    const option = '(option handshakesMax of the server)';
    this.#limits = limits;
    this.#inUse = inUse;
    // Another attempt may get further soon.
    const crowdOut = (link: Link, why: string): void =>
      this.#refuse(link, why, Status.RESOURCE_EXHAUSTED, handshakeGraceMs);
    this.#unproved = new Unproved(sessionsPerPeerMax, crowdOut);
    this.#silent = new Silent(handshakesMax, (link) =>
      crowdOut(link, `more than ${handshakesMax} unfinished handshakes ${option}`),
    );
    this.#asked = new Silent(
      handshakesMax,
      (link) => crowdOut(link, `more than ${handshakesMax} connections wait for \`authenticate\` ${option}`),
      handshakeWaitMs,
    );
    const owner: PlacesOwner<Link> = {
      awaitedMs: (link) => link.awaitedMs,
      steps: (link) => link.steps,
      rank: () => 0,
      sendAway: (link) =>
        crowdOut(link, `nothing came for ${handshakeStallMs} ms, and other handshakes wait ${option}`),
    };
    this.#places = new Places(handshakesMax, {
      ...owner,
      rank: (link) => this.#suspects.rank(this.#open.get(link)?.address ?? ''),
    });
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
    this.#open.set(link, { timer, address, wasServed: false });
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

  /** The client says that its session is up. */
  succeed(link: Link): void {
    const handshake = this.#open.get(link);
    if (handshake !== undefined) this.#suspects.succeeded(handshake.address);
    this.#forget(link);
  }

  /** It is over; unless it has succeeded before, it has come to nothing. */
  end(link: Link): void {
    const handshake = this.#open.get(link);
    if (handshake?.wasServed === true && !this.#inUse(link)) this.#suspects.failed(handshake.address);
    this.#forget(link);
  }

  #forget(link: Link): void {
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

  /**
   * Sends away a handshake that `of` picks and whose peer has been silent for a moment, since it has what
   * another one needs, and returns it. Returns undefined when there is none.
   */
  sendAwaySilent(of: (link: Link, address: string) => boolean): Link | undefined {
    const picks = (link: Link): boolean =>
      !this.#inUse(link) && of(link, this.#open.get(link)?.address ?? '');
    return this.#places.sendAwaySilent(picks) ?? this.#provedPlaces.sendAwaySilent(picks);
  }

  /** Ends those that `of` picks. */
  closeAll(reason: string, of: (link: Link) => boolean): void {
    for (const link of [...this.#open.keys()]) if (of(link)) this.#refuse(link, reason, Status.UNAVAILABLE);
  }

  #turn(places: Places<Link>, link: Link): Promise<void> | undefined {
    const handshake = this.#open.get(link);
    const address = handshake?.address ?? '';
    if (handshake?.wasServed !== true) {
      const rank = this.#suspects.rank(address);
      if (this.#suspects.came(address)) this.#places.lapse(rank);
    }
    const served = (): void => {
      link.awaits = undefined;
      if (handshake !== undefined) handshake.wasServed = true;
    };
    const refused = (error: unknown): never => {
      const retryMs = error instanceof RpcError ? pushback(error) : undefined;
      if (typeof retryMs === 'number') this.#suspects.told(address, retryMs);
      throw error;
    };
    let turn: Promise<void> | undefined;
    try {
      turn = places.enter(link);
    } catch (error) {
      return refused(error);
    }
    if (turn === undefined) {
      served();
      return undefined;
    }
    link.awaits = 'no turn among other handshakes';
    return turn.then(served, refused);
  }

  /** `retryMs`: when to come again, for one of a crowd. */
  #refuse(link: Link, message: string, code: number = Status.RESOURCE_EXHAUSTED, retryMs?: number): void {
    this.end(link);
    if (this.#inUse(link)) return;
    link.close(message, { type: 'refusal', code, message, ...(retryMs !== undefined && { retryMs }) });
  }
}
