/**
 * The connections of a server whose handshake is in progress. Each has a time limit. The number of
 * connections that have sent nothing yet is limited (silent.ts), and so is the number of handshakes that are
 * being served (handshake-limiter.ts). TLS with suspect addresses also begins at a limited rate
 * (suspect-tls.ts). A connection occupies no slot of the limiter while `authenticate` decides about it. Once
 * admitted, the connection uses a second limiter, to which unauthenticated peers have no access. Therefore
 * slow decisions about unauthenticated peers do not delay admitted clients. A server uses this file.
 */
import { pushback } from '../../core/errors/pushback.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { handshakeGraceMs, handshakeQueueFactor, handshakeStallMs, handshakeWaitMs } from '../../limits.ts';
import type { Link } from '../link.ts';
import { HandshakeLimiter, type HandshakeLimiterOwner } from './handshake-limiter.ts';
import { Silent } from './silent.ts';
import { SuspectTls } from './suspect-tls.ts';
import { Suspects } from './suspects.ts';
import { Unadmitted } from './unadmitted.ts';

export interface HandshakeLimits {
  readonly handshakesMax: number;
  readonly sessionsPerPeerMax: number;
  readonly handshakeTimeoutMs: number;
}

interface Handshake {
  timer: NodeJS.Timeout;
  /** Network address of the client; '' for a unix socket. */
  readonly address: string;
  /** True when the handshake has had a slot of the limiter. */
  wasServed: boolean;
}

export class Handshakes {
  readonly #limits: HandshakeLimits;
  readonly #inUse: (link: Link) => boolean;
  readonly #open = new Map<Link, Handshake>();
  readonly #unadmitted: Unadmitted<Link>;
  readonly #silent: Silent<Link>;
  /** Connections that wait for a decision of `authenticate`. */
  readonly #asked: Silent<Link>;
  readonly #limiter: HandshakeLimiter<Link>;
  /** Limiter for connections that `authenticate` has admitted. */
  readonly #admittedLimiter: HandshakeLimiter<Link>;
  readonly #suspects = new Suspects();
  readonly #suspectTls: SuspectTls<Link>;

  /**
   * `inUse` returns whether the session of the link has had a request. Such a request counts as the `ready`
   * frame, which may still be on its way.
   */
  constructor(limits: HandshakeLimits, inUse: (link: Link) => boolean) {
    const { handshakesMax, sessionsPerPeerMax } = limits;
    const option = '(option handshakesMax of the server)';
    this.#limits = limits;
    this.#inUse = inUse;
    // Refuses the connection with a status that lets the client retry, because another attempt may soon
    // succeed.
    const refuseOverload = (link: Link, why: string): void =>
      this.#refuse(link, why, Status.RESOURCE_EXHAUSTED, handshakeGraceMs);
    this.#unadmitted = new Unadmitted(sessionsPerPeerMax, refuseOverload);
    this.#silent = new Silent(handshakesMax, (link) =>
      refuseOverload(link, `more than ${handshakesMax} unfinished handshakes ${option}`),
    );
    this.#asked = new Silent(
      handshakesMax,
      (link) =>
        refuseOverload(link, `more than ${handshakesMax} connections wait for \`authenticate\` ${option}`),
      handshakeWaitMs,
    );
    const owner: HandshakeLimiterOwner<Link> = {
      awaitedMs: (link) => link.awaitedMs,
      steps: (link) => link.steps,
      rank: () => 0,
      evict: (link) =>
        refuseOverload(
          link,
          `nothing was received for ${handshakeStallMs} ms while other handshakes wait ${option}`,
        ),
    };
    const rank = (link: Link): number => this.#suspects.rank(this.#open.get(link)?.address ?? '');
    this.#limiter = new HandshakeLimiter(handshakesMax, { ...owner, rank });
    this.#suspectTls = new SuspectTls(handshakesMax * handshakeQueueFactor, {
      rank,
      evict: (link) => refuseOverload(link, `too many connections wait for TLS ${option}`),
    });
    this.#admittedLimiter = new HandshakeLimiter(handshakesMax, owner);
  }

  /** Number of handshakes in progress. */
  get size(): number {
    return this.#open.size;
  }

  begin(link: Link, address: string): void {
    const timer = setTimeout(() => this.#expire(link), this.#limits.handshakeTimeoutMs);
    this.#open.set(link, { timer, address, wasServed: false });
    this.#silent.add(link);
    this.#unadmitted.begin(address, link);
  }

  /**
   * Does the same as `enter`, when the client has begun TLS, which costs the server a signature.
   */
  enterTls(link: Link): Promise<void> | undefined {
    this.#silent.delete(link);
    link.awaits = 'no turn for TLS behind other addresses';
    return this.#suspectTls.before(link, () => this.enter(link));
  }

  /**
   * Runs when the client has sent its hello. Returns undefined when the handshake may continue now, otherwise
   * a promise that resolves when it may continue. Throws when too many handshakes wait.
   */
  enter(link: Link): Promise<void> | undefined {
    this.#silent.delete(link);
    return this.#turn(this.#limiter, link);
  }

  /**
   * Resolves with the result of `authenticate` when the handshake may continue. Rejects with the error of
   * `authenticate`. Also rejects when the handshake has ended in the meantime.
   */
  async whileAsked<T>(link: Link, answer: Promise<T>): Promise<T> {
    this.#limiter.leave(link);
    this.#asked.add(link);
    this.#unadmitted.ask(this.#open.get(link)?.address ?? '', link);
    link.awaits = '`authenticate` of the server has not answered';
    let known: T;
    try {
      known = await answer;
    } finally {
      this.#asked.delete(link);
      link.awaits = undefined;
    }
    if (!this.#open.has(link)) throw new Error(link.ended ?? 'the handshake is over');
    await this.#turn(this.#admittedLimiter, link);
    return known;
  }

  /** Runs when the client has reported that its session is connected. */
  succeed(link: Link): void {
    const handshake = this.#open.get(link);
    if (handshake !== undefined) this.#suspects.succeeded(handshake.address);
    this.#forget(link);
  }

  /** Runs when the connection ends. The handshake counts as failed if it has not succeeded before. */
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
    this.#unadmitted.leave(handshake.address, link);
    this.#silent.delete(link);
    this.#asked.delete(link);
    this.#suspectTls.leave(link);
    this.#limiter.leave(link);
    this.#admittedLimiter.leave(link);
  }

  /** Runs when the connection is admitted. */
  admit(link: Link): void {
    const handshake = this.#open.get(link);
    if (handshake !== undefined) this.#unadmitted.leave(handshake.address, link);
  }

  /**
   * Evicts one of the handshakes that `of` selects and whose peer has been silent for a moment. Runs when
   * another handshake needs the slots or memory of these handshakes. Returns the evicted handshake, or
   * undefined when there is no such handshake.
   */
  evictSilent(of: (link: Link, address: string) => boolean): Link | undefined {
    const picks = (link: Link): boolean =>
      !this.#inUse(link) && of(link, this.#open.get(link)?.address ?? '');
    return this.#limiter.evictSilent(picks) ?? this.#admittedLimiter.evictSilent(picks);
  }

  /** Closes the handshakes that `of` selects. */
  closeAll(reason: string, of: (link: Link) => boolean): void {
    for (const link of [...this.#open.keys()]) if (of(link)) this.#refuse(link, reason, Status.UNAVAILABLE);
  }

  #turn(limiter: HandshakeLimiter<Link>, link: Link): Promise<void> | undefined {
    const handshake = this.#open.get(link);
    const address = handshake?.address ?? '';
    if (handshake?.wasServed !== true) {
      const rank = this.#suspects.rank(address);
      if (this.#suspects.came(address)) this.#limiter.lapse(rank);
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
      turn = limiter.enter(link);
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

  /**
   * Refuses a handshake whose time limit has passed. Timers run before sockets are read, and this thread may
   * have been busy all that time, so the sockets are read first. A client whose next step is found in this
   * way gets more time.
   */
  #expire(link: Link): void {
    const { steps } = link;
    setImmediate(() => {
      const handshake = this.#open.get(link);
      if (handshake === undefined) return;
      const goesOn = link.awaits === undefined && link.steps !== steps;
      if (goesOn) {
        handshake.timer = setTimeout(() => this.#expire(link), handshakeStallMs);
        return;
      }
      const { handshakeTimeoutMs } = this.#limits;
      this.#refuse(
        link,
        `${link.awaits ?? 'no handshake'} within ${handshakeTimeoutMs} ms (option handshakeTimeoutMs of the server)`,
      );
    });
  }

  /**
   * Refuses a client, unless its session is in use. `retryMs` tells a client that is refused because of
   * overload when to retry.
   */
  #refuse(link: Link, message: string, code: number = Status.RESOURCE_EXHAUSTED, retryMs?: number): void {
    this.end(link);
    if (this.#inUse(link)) return;
    link.close(message, { type: 'refusal', code, message, ...(retryMs !== undefined && { retryMs }) });
  }
}
