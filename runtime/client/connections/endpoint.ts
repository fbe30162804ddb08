/**
 * One address of a channel: its connection, the pause after a failed attempt, the check after a long idle
 * time, and its ejection because of bad answers. It connects only when the owner wants a connection. A
 * channel owns this object.
 */

import { clockMs } from '../../clock.ts';
import type { Connection } from '../../control/handshake/client-handshake.ts';
import type { LocalSide } from '../../control/handshake/session-setup.ts';
import { unavailable } from '../../core/errors/failure.ts';
import { pushback } from '../../core/errors/pushback.ts';
import type { RpcError } from '../../core/errors/rpc-error.ts';
import { inRoot } from '../../core/scopes.ts';
import type { FabricName } from '../../fabrics.ts';
import { closeTimeoutMs } from '../../limits.ts';
import type { CallQueue } from '../queue/call-queue.ts';
import { attemptLimit } from './attempt-limit.ts';
import { awaitedPause, type Deadlines } from './awaited-pause.ts';
import { Backoff } from './backoff.ts';
import type { Totals } from './channel-totals.ts';
import { ClientLink, type ClientLinkOwner, type Sideband } from './client-link.ts';
import { connectError } from './connect-error.ts';
import { FabricUpgrade } from './fabric-upgrade.ts';
import { ejectionMaxMs, verifyTimeoutMs } from './limits.ts';
import type { OutlierDetection, Tally, Watched } from './outliers.ts';
import { SilenceChecks } from './silence-checks.ts';
import type { Turns } from './turns.ts';

/**
 * `failing`: the last attempt has failed, and the pause is not over. `ejected`: connected, but not used
 * because of bad answers.
 */
export type EndpointState = 'idle' | 'connecting' | 'ready' | 'verifying' | 'failing' | 'ejected';

/** A connection that is ready for calls. */
export interface ReadyConnection {
  readonly link: Sideband;
  readonly connection: Connection;
}
/** Connects. Rejects with the signal's reason, an Error, when the signal is aborted. */
export type Open = (side: LocalSide, signal: AbortSignal) => Promise<ReadyConnection>;

export interface EndpointSettings {
  readonly connectTimeoutMs: number;
  readonly backoffMs: number;
  readonly backoffMaxMs: number;
  readonly fabricUpgradeMs: number;
  readonly outlierDetection: Pick<Required<OutlierDetection>, 'badAnswersMax' | 'ejectionMs'>;
}

export interface EndpointOwner {
  readonly settings: EndpointSettings;
  /** The queue in which the channel's calls wait. */
  readonly queue: CallQueue;
  /** True when a caller waits for a connection without a time limit. */
  readonly wanted: boolean;
  /** Deadlines of the calls that wait. */
  readonly deadlines: Deadlines;
  /** Limits the attempts that run at the same time (turns.ts). */
  readonly turns: Turns;
  readonly totals: Totals;
  side(): LocalSide;
  onChange(endpoint: Endpoint): void;
  /** Runs when the address was closed or retired and its last connection has ended. */
  onGone(endpoint: Endpoint): void;
  /** Returns whether another address may be ejected. */
  mayEject(): boolean;
}

export class Endpoint implements ClientLinkOwner, Watched {
  readonly address: string;
  state: EndpointState = 'idle';
  /** The reason why the last attempt failed; undefined after a success. */
  error: RpcError | undefined;
  /** The connection for new calls. */
  link: ClientLink | undefined;

  readonly #open: Open;
  readonly #owner: EndpointOwner;
  readonly #backoff: Backoff;
  #ejection: Backoff | undefined;
  readonly #silence: SilenceChecks;
  readonly #upgrade: FabricUpgrade;
  /** All connections that have not ended, including draining connections. */
  readonly #links = new Set<ClientLink>();
  #attempt: Promise<void> | undefined;
  #abandon: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The end of the pause after a failed attempt. */
  #pauseEndMs = 0;
  #asked = false;
  /** Start of a series of attempts, after each of which the server has requested a pause. */
  #askedSinceMs: number | undefined;
  /** The end of the last ejection. */
  #ejectionEndMs = 0;
  /**
   * True when the server of the last attempt was shutting down. The successor of the server may already be
   * running, so the next attempt is made without a pause.
   */
  #leftAtOnce = false;
  /** True when the server has refused the last connection after its handshake. */
  #rejected = false;
  #gone: string | undefined;
  #onLastLink: (() => void) | undefined;

  constructor(address: string, open: Open, owner: EndpointOwner) {
    this.address = address;
    this.#open = open;
    this.#owner = owner;
    const { backoffMs, backoffMaxMs, fabricUpgradeMs } = owner.settings;
    this.#backoff = new Backoff(backoffMs, backoffMaxMs, Math.random, true);
    this.#silence = new SilenceChecks(address, (link, why) => this.#leaveSilent(link, why));
    this.#upgrade = new FabricUpgrade(fabricUpgradeMs, (fabrics, abandon) =>
      this.#tryBetter(fabrics, abandon),
    );
  }

  /** True while calls are in flight. */
  get busy(): boolean {
    return [...this.#links].some(({ busy }) => busy);
  }

  /**
   * True when the server has requested a retry within the time limit of an attempt. The address then counts
   * as connecting.
   */
  get comesAgain(): boolean {
    if (this.state !== 'failing' || this.#askedSinceMs === undefined) return false;
    return this.#pauseEndMs < this.#askedSinceMs + this.#owner.settings.connectTimeoutMs;
  }

  /** Ends the pause after a failed attempt. */
  forgive(): void {
    if (this.state !== 'failing') return;
    clearTimeout(this.#timer);
    this.state = 'idle';
  }

  /** Receives the deadlines of callers that begin to wait. Shortens a long pause. */
  hurry(deadlines: Deadlines): void {
    if (this.state !== 'failing' || this.#asked) return;
    const nowMs = clockMs();
    const leftMs = this.#pauseEndMs - nowMs;
    const { backoffMs } = this.#owner.settings;
    const pauseMs = awaitedPause(leftMs, backoffMs, Math.random(), nowMs, deadlines);
    if (pauseMs < leftMs) this.#pause(pauseMs);
  }

  /** Begins an attempt, even during a pause, unless a connection or an attempt exists. */
  connect(): void {
    if (this.#gone !== undefined || this.#attempt !== undefined || this.link !== undefined) return;
    clearTimeout(this.#timer);
    this.#askedSinceMs ??= clockMs();
    // The attempt begins asynchronously, so that an early error cannot end it before it is stored. It runs in
    // the root context, because the connection, its events and its timers serve other callers, too.
    this.#attempt = inRoot(() => Promise.resolve().then(() => this.#connect()));
    this.#set('connecting');
  }

  /**
   * Checks a connection after a long idle time: calls use it again when the server has answered a ping. A
   * silent connection is being pinged already.
   */
  verify(): void {
    const { link } = this;
    if (link === undefined || this.state !== 'ready' || !link.pings || this.#silence.checks(link)) return;
    this.#set('verifying');
    link.ping(verifyTimeoutMs, () => link.close(`no answer to a ping within ${verifyTimeoutMs} ms`));
  }

  /** Runs when the address is no longer in the channel's list. Calls in flight finish. */
  retire(): void {
    this.#leave('the address is no longer in use');
    this.link?.drain();
    if (this.#links.size === 0) this.#owner.onGone(this);
  }

  /** Resolves when the connections of this address have ended, or after a time limit. */
  async close(reason: string): Promise<void> {
    const attempt = this.#attempt;
    this.#leave(reason);
    await attempt;
    await this.#upgrade.ended();
    for (const link of [...this.#links]) link.close(reason);
    await this.#linksGone();
    this.#owner.onGone(this);
  }

  onPong(link: ClientLink): void {
    this.#silence.onPong(link);
    if (this.link === link && this.state === 'verifying') this.#set('ready');
  }

  onRetired(link: ClientLink): void {
    if (this.link !== link) return;
    this.link = undefined;
    this.#upgrade.stop('the connection to be replaced was lost');
    clearTimeout(this.#timer);
    const again = this.#rejected && link.unserved;
    this.#rejected = link.unserved;
    if (!again) this.#owner.totals.left(link, this.#gone !== undefined);
    if (this.#gone !== undefined) return;
    // Connections that are refused after their handshakes count as failed attempts, with pauses between them.
    if (again) {
      const refused = unavailable(link.ended ?? 'the server has refused the connection');
      this.#attempted(connectError(this.address, refused));
    } else this.#set('idle');
  }

  onDown(link: ClientLink): void {
    this.#links.delete(link);
    this.#silence.stop(link);
    if (this.#gone === undefined && !link.draining && !link.unserved && !link.unneeded)
      this.#log(`the connection was lost: ${link.ended}`);
    this.#owner.totals.remove(link);
    if (this.#links.size === 0) {
      this.#onLastLink?.();
      if (this.#gone !== undefined) this.#owner.onGone(this);
    }
    this.onRetired(link);
  }

  onConsecutiveErrors(link: ClientLink): void {
    if (this.link !== link || !this.eject()) link.session.tally.forgive();
  }

  /**
   * Asks the server for a sign of life, because perhaps only its handlers are slow. A connection without
   * pings belongs to a client that serves (reverse/), and only that client can replace it.
   */
  onSilence(link: ClientLink): void {
    if (this.link === link && this.state === 'ready' && link.pings) this.#silence.begin(link);
  }

  #leaveSilent(link: ClientLink, why: string): void {
    if (this.link !== link) return;
    this.error = unavailable(why);
    this.#log(`another connection is made: ${why}`);
    link.drain();
  }

  #log(what: string): void {
    this.#owner.side().log(() => `${this.address}: ${what}`, false);
  }

  takeTally(): Tally {
    return this.link?.session.tally.take() ?? { answers: 0, bad: 0 };
  }

  /**
   * Ejects the address for a while. Returns false when the address takes no calls now, or when too many other
   * addresses are ejected.
   */
  eject(): boolean {
    const { link } = this;
    if (link === undefined || this.state !== 'ready' || !this.#owner.mayEject()) return false;
    // After a long time without ejection, begin with the short pause again.
    if (clockMs() - this.#ejectionEndMs > ejectionMaxMs) this.#ejection = undefined;
    this.#ejection ??= new Backoff(this.#owner.settings.outlierDetection.ejectionMs, ejectionMaxMs);
    this.#timer = setTimeout(() => {
      this.#ejectionEndMs = clockMs();
      link.session.tally.forgive();
      link.session.tally.take();
      this.#set('ready');
    }, this.#ejection.next());
    this.#timer.unref();
    this.#set('ejected');
    return true;
  }

  async #connect(): Promise<void> {
    const abandon = new AbortController();
    this.#abandon = abandon;
    let timer: NodeJS.Timeout | undefined;
    let begun = false;
    let error: RpcError | undefined;
    try {
      const { settings } = this.#owner;
      // The channel may have been closed while the attempt ended, before it could be abandoned.
      if (this.#gone !== undefined) throw unavailable(this.#gone);
      const turn = this.#owner.turns.enter(this.address, settings.connectTimeoutMs, abandon.signal);
      if (turn !== undefined) await turn;
      begun = true;
      timer = attemptLimit(settings.connectTimeoutMs, abandon);
      const side = this.#owner.side();
      const current = this.#adopt(await this.#open(side, abandon.signal));
      const { ended } = current;
      if (this.#gone !== undefined) current.close(this.#gone);
      else if (ended === undefined) {
        this.link = current;
        this.#owner.totals.connected(this);
        this.#leftAtOnce = false;
        this.#upgrade.watch(current.connection.fabric, side.fabrics);
      } else if (this.#leftAtOnce || !current.draining) throw unavailable(ended);
      else this.#leftAtOnce = true;
    } catch (cause) {
      error = connectError(this.address, cause);
    } finally {
      clearTimeout(timer);
      if (begun) this.#owner.turns.leave(this.address, error === undefined);
      this.#abandon = undefined;
      this.#attempt = undefined;
    }
    if (this.#gone === undefined) this.#attempted(error);
  }

  /**
   * The callback in which the session has connected must call it, because events may arrive at once.
   */
  #adopt({ link, connection }: ReadyConnection): ClientLink {
    const { queue, settings } = this.#owner;
    const adopted = new ClientLink(connection, link, queue, this, settings.outlierDetection.badAnswersMax);
    adopted.session.silence.limitMs = this.#silence.nextLimitMs();
    this.#links.add(adopted);
    this.#owner.totals.add(adopted);
    return adopted;
  }

  /** New calls use the better connection; the old connection ends with its last call. */
  async #tryBetter(better: readonly FabricName[], abandon: AbortController): Promise<boolean> {
    const old = this.link;
    const side = this.#owner.side();
    const fabrics = better.filter((name) => side.fabrics.includes(name));
    const timer = attemptLimit(this.#owner.settings.connectTimeoutMs, abandon);
    try {
      const found = this.#adopt(await this.#open({ ...side, fabrics }, abandon.signal));
      const isWanted = this.link === old && this.state === 'ready' && !abandon.signal.aborted;
      found.unneeded = !isWanted || found.ended !== undefined;
      if (found.unneeded) found.close(this.#gone ?? 'a better fabric came too late');
      if (found.unneeded || old === undefined) return false;
      this.link = found;
      this.#set('ready');
      old.drain();
      this.#upgrade.watch(found.connection.fabric, side.fabrics);
      return true;
    } finally {
      clearTimeout(timer);
    }
  }

  #attempted(error: RpcError | undefined): void {
    this.error = error;
    if (error === undefined) {
      this.#askedSinceMs = undefined;
      this.#backoff.reset();
      this.#set(this.link === undefined ? 'idle' : 'ready');
      return;
    }
    ++this.#owner.totals.connectFailures;
    // An overloaded server says when to retry; that pause is used, with some more at random.
    const asked = pushback(error);
    this.#asked = typeof asked === 'number';
    if (!this.#asked) this.#askedSinceMs = undefined;
    this.#pause(typeof asked === 'number' ? this.#backoff.asked(asked) : this.#backoff.next());
    this.#set('failing');
    if (!this.comesAgain) this.#askedSinceMs = undefined;
    // Calls without `waitForReady` fail with the attempt. If other callers still wait, the pause is
    // shortened.
    if (this.#owner.wanted) this.hurry(this.#owner.deadlines);
  }

  #pause(ms: number): void {
    clearTimeout(this.#timer);
    this.#pauseEndMs = clockMs() + ms;
    const over = (): void => {
      if (this.#owner.wanted) this.connect();
      else {
        this.#askedSinceMs = undefined;
        this.#set('idle');
      }
    };
    this.#timer = inRoot(() => setTimeout(over, ms).unref());
  }

  #leave(reason: string): void {
    this.#gone ??= reason;
    clearTimeout(this.#timer);
    this.#upgrade.stop(reason);
    this.#abandon?.abort(new Error(reason));
  }

  #linksGone(): Promise<void> {
    if (this.#links.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, closeTimeoutMs);
      this.#onLastLink = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #set(state: EndpointState): void {
    this.state = state;
    this.#owner.onChange(this);
  }
}
