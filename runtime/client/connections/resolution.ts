/**
 * Keeps the addresses of a channel up to date. It calls the channel's resolver when the channel connects and
 * when a connection was lost, one call at a time and at most one every `resolveMinMs`. It also takes the
 * lists that the resolver pushes. After a failure the known addresses stay in use; while the channel is
 * connected or a caller waits, the resolver is called again after growing pauses. A channel owns this object.
 */

import { clockMs } from '../../clock.ts';
import { unavailable } from '../../core/errors/failure.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { guardedInRoot } from '../../core/foreign.ts';
import { inRoot } from '../../core/scopes.ts';
import { Backoff } from './backoff.ts';
import { addressesMax, listedMax } from './limits.ts';
import { Paced } from './paced.ts';
import type { Resolver } from './resolver.ts';
import { checkedServers, type Server, type ServerAddress } from './servers.ts';

export interface ResolutionSettings {
  readonly connectTimeoutMs: number;
  readonly backoffMs: number;
  readonly backoffMaxMs: number;
  readonly resolveMinMs: number;
  readonly subset: { readonly size: number };
}

export interface ResolutionOwner {
  /** True when a caller waits for a connection. */
  readonly wanted: boolean;
  /** True when at least one of the addresses has a connection. */
  readonly inUse: boolean;
  onServers(servers: readonly Server[]): void;
  onResolutionChange(): void;
}

type List = readonly (string | ServerAddress)[];

export class Resolution {
  state: 'idle' | 'connecting' | 'failing' = 'idle';
  /** The reason why the last attempt failed. */
  error: RpcError | undefined;
  /** True when the last attempt has failed, so that the known addresses come from an earlier attempt. */
  stale = false;

  readonly #name: string;
  readonly #resolver: Resolver;
  readonly #settings: ResolutionSettings;
  readonly #owner: ResolutionOwner;
  readonly #backoff: Backoff;
  readonly #paced: Paced<List>;
  readonly #unwatch: (() => void) | undefined;
  #abandon: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lastMs = Number.NEGATIVE_INFINITY;
  /** True when a resolution was requested while another one was running, whose result may be outdated. */
  #again = false;
  /**
   * Number of lists that the resolver has pushed. The answer of a call is outdated if this number changed
   * during the call.
   */
  #pushed = 0;
  #closed = false;

  constructor(name: string, resolver: Resolver, settings: ResolutionSettings, owner: ResolutionOwner) {
    this.#name = name;
    this.#resolver = resolver;
    this.#settings = settings;
    this.#owner = owner;
    this.#backoff = new Backoff(settings.backoffMs, settings.backoffMaxMs);
    const take = (given: List): number => inRoot(() => this.#take(given));
    this.#paced = new Paced(take, (cause) => inRoot(() => this.#failed(cause)));
    let created = false;
    const onChange: Parameters<NonNullable<Resolver['watch']>>[0] = (servers) => {
      // If the resolver calls back within `watch`, the constructor of the owner has not finished yet.
      if (created) this.#changed(servers);
      else queueMicrotask(() => this.#changed(servers));
    };
    this.#unwatch = inRoot(() => resolver.watch?.(onChange));
    created = true;
  }

  /** Resolves now, or as soon as `resolveMinMs` allows. */
  refresh(): void {
    if (this.#closed || this.#abandon !== undefined || this.#timer !== undefined) return;
    const waitMs = this.#lastMs + this.#settings.resolveMinMs - clockMs();
    if (waitMs <= 0) this.#begin();
    else this.#later(waitMs, () => this.#begin());
  }

  /** Resolves now, even during a pause. */
  askNow(): void {
    if (this.#closed || this.#abandon !== undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#begin();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#paced.close();
    this.#abandon?.abort(new Error('the channel was closed'));
    guardedInRoot('what `watch` of the resolver returned', () => this.#unwatch?.());
  }

  #changed(pushed?: List): void {
    if (this.#closed) return;
    if (pushed !== undefined) {
      // The list may have to wait, and the resolver may change its array in the meantime.
      const list = Array.isArray(pushed) ? [...pushed] : pushed;
      this.#paced.changed(() => list);
    } else if (this.#abandon !== undefined) this.#again = true;
    else this.askNow();
  }

  #later(ms: number, then: () => void): void {
    const fire = (): void => {
      this.#timer = undefined;
      then();
    };
    clearTimeout(this.#timer);
    this.#timer = inRoot(() => setTimeout(fire, ms));
    this.#timer.unref();
  }

  /** Runs in the root context, because the answer serves other callers, too. */
  #begin(): void {
    // A pushed list that was refused may have started the pause during a running attempt.
    if (this.#abandon !== undefined) return;
    void inRoot(this.#ask, this);
  }

  async #ask(): Promise<void> {
    this.#again = false;
    // A pushed list that still waits is older than the answer.
    this.#paced.flush();
    const pushed = this.#pushed;
    this.#set('connecting');
    try {
      const servers = this.#checked(await this.#answer());
      if (this.#closed) return;
      if (pushed === this.#pushed) this.#succeeded(servers);
    } catch (cause) {
      if (this.#closed) return;
      if (pushed === this.#pushed) this.#failed(cause);
    }
    if (this.#again) this.askNow();
  }

  /** Uses a list that the resolver has pushed. Returns the number of servers. Throws for an invalid list. */
  #take(given: List): number {
    const servers = this.#checked(given);
    ++this.#pushed;
    this.#succeeded(servers);
    return servers.length;
  }

  #checked(given: List): readonly Server[] {
    const servers =
      this.#settings.subset.size === 0
        ? checkedServers('the resolver', [...given], addressesMax, '; give the channel the option subset')
        : checkedServers('the resolver', [...given], listedMax);
    if (servers.length === 0) throw new Error('the resolver gave no address');
    return servers;
  }

  #succeeded(servers: readonly Server[]): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.error = undefined;
    this.stale = false;
    this.#backoff.reset();
    this.#lastMs = clockMs();
    this.state = 'idle';
    this.#owner.onServers(servers);
  }

  #failed(cause: unknown): void {
    const { rawMessage } = RpcError.from(cause, Status.UNAVAILABLE);
    this.error = unavailable(`cannot resolve ${this.#name}: ${rawMessage}`, 'no', cause);
    this.stale = true;
    // A pause that is running goes on. Otherwise a resolver that keeps pushing lists which cannot be used
    // would never be asked again.
    if (this.#timer === undefined)
      this.#later(this.#backoff.next(), () => {
        if (this.#owner.wanted || this.#owner.inUse) this.#begin();
        else this.#set('idle');
      });
    this.#set('failing');
  }

  /**
   * Resolves with the resolver's answer. Rejects after `connectTimeoutMs` even if the resolver ignores its
   * signal.
   */
  async #answer(): Promise<List> {
    const { connectTimeoutMs } = this.#settings;
    const abandon = new AbortController();
    this.#abandon = abandon;
    const late = `no addresses within ${connectTimeoutMs} ms (option connectTimeoutMs of the channel)`;
    const timer = setTimeout(() => abandon.abort(new Error(late)), connectTimeoutMs);
    try {
      return await new Promise((resolve, reject) => {
        abandon.signal.addEventListener('abort', () => reject(abandon.signal.reason));
        Promise.resolve(this.#resolver.resolve(abandon.signal)).then(resolve, reject);
      });
    } finally {
      clearTimeout(timer);
      this.#abandon = undefined;
    }
  }

  #set(state: Resolution['state']): void {
    this.state = state;
    this.#owner.onResolutionChange();
  }
}
