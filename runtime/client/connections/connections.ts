/**
 * The connections of a channel. It keeps the addresses, which come from a list or a resolver, chooses the
 * connection for the next call, and computes the combined state of all connections. A channel owns this
 * object and is notified of every change.
 */

import type { Duplex } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import { type Connection, openConnection } from '../../control/handshake/client-handshake.ts';
import type { LocalSide } from '../../control/handshake/session-setup.ts';
import type { RpcError } from '../../core/errors/rpc-error.ts';
import type { FabricName } from '../../fabrics.ts';
import type { Policy } from '../balancing/policy.ts';
import { subsetOf } from '../balancing/subset.ts';
import type { CallQueue } from '../queue/call-queue.ts';
import type { Deadlines } from './awaited-pause.ts';
import { Totals } from './channel-totals.ts';
import type { ClientLink } from './client-link.ts';
import { Doors } from './doors.ts';
import {
  Endpoint,
  type EndpointOwner,
  type EndpointSettings,
  type EndpointState,
  type Open,
} from './endpoint.ts';
import { type HealthSettings, HealthWatches } from './health-watch.ts';
import { ejectedShareMax } from './limits.ts';
import { takeReports } from './load-reports.ts';
import { type OutlierConfig, type OutlierSettings, Outliers } from './outliers.ts';
import { type PolicySettings, policyOf } from './policies.ts';
import { type LinkRoom, ReadyServer, serverRoom } from './ready-server.ts';
import { Resolution, type ResolutionOwner, type ResolutionSettings } from './resolution.ts';
import { type AddressSummary, grouped, type ServerGroup, summaryOf } from './server-group.ts';
import type { Server } from './servers.ts';
import { type SubsetSettings, subsetId } from './subset-id.ts';
import type { Target } from './target.ts';
import { type Turns, turns } from './turns.ts';

/** The way in which a channel reaches its servers. */
export interface Route extends Omit<Target, 'name' | 'host'> {
  /** The text for errors; the address itself when there is no list or resolver. */
  readonly address: string;
  readonly dial: (signal: AbortSignal, address: string) => Promise<Duplex>;
  /** Opens a session over a connection that already exists (reverse/); the channel then does not dial. */
  readonly open?: Open;
  /** Replaces the fabrics that the options allow. */
  readonly fabrics?: readonly FabricName[];
  readonly onClosed?: () => Promise<void>;
  /** Server name for errors when the addresses do not identify the server. */
  readonly turns?: Turns;
}

export type ConnectionsSettings = EndpointSettings &
  ResolutionSettings &
  PolicySettings &
  OutlierSettings &
  HealthSettings &
  SubsetSettings & { readonly connectionsPerAddress: number };

export interface ConnectionsOwner {
  readonly settings: ConnectionsSettings;
  /** The queue in which the channel's calls wait. */
  readonly queue: CallQueue;
  readonly wanted: boolean;
  /** Deadlines of the calls that wait. */
  readonly deadlines: Deadlines;
  side(): LocalSide;
  /** The service configuration, which addresses of a resolver may have. */
  readonly config: { onServers(servers: readonly Server[]): void } | undefined;
  /** Runs when the state of the channel changes. `state` is the combined state of the connections. */
  onChange(state: EndpointState): void;
}

export class Connections implements EndpointOwner, ResolutionOwner {
  settings: ConnectionsSettings;
  readonly queue: CallQueue;
  readonly turns: Turns;
  readonly totals = new Totals();
  /** The connections that take calls. */
  ready: ClientLink[] = [];
  /**
   * The element of `ready` that took the last call, or the only element. It is undefined when the channel is
   * not connected.
   */
  current: ClientLink | undefined;
  /** True when the policy chooses among several addresses, by `next()`. */
  several = false;

  readonly #route: Route;
  readonly #owner: ConnectionsOwner;
  readonly #resolution: Resolution | undefined;
  readonly #doors: Doors;
  readonly #outliers: Outliers;
  readonly #health: HealthWatches | undefined;
  #balancing: PolicySettings;
  #policy: Policy<ReadyServer>;
  #servers: readonly Server[] = [];
  /** One group for each server. */
  #groups: readonly ServerGroup[] = [];
  /** The endpoints of all groups. */
  #endpoints: readonly Endpoint[] = [];
  /** Addresses that are no longer used, until their last call has ended. */
  readonly #leaving = new Set<Endpoint>();
  /** Number of calls since the addresses without a connection were last checked. */
  #calls = 0;
  #closed = false;

  constructor(route: Route, owner: ConnectionsOwner) {
    this.#route = route;
    this.#owner = owner;
    this.settings = owner.settings;
    this.queue = owner.queue;
    this.turns = route.turns ?? turns;
    this.#doors = new Doors((address) => this.#openOf(address), owner.settings.connectTimeoutMs);
    this.#balancing = owner.settings;
    this.#policy = policyOf(owner.settings);
    const { healthCheck } = owner.settings;
    if (healthCheck !== undefined && !this.#pickFirst)
      this.#health = new HealthWatches(healthCheck, owner.settings, () => this.#update());
    this.#outliers = new Outliers(this, () => this.#endpoints);
    const { resolver, servers = [{ address: route.address, weight: 1 }] } = route;
    if (resolver === undefined) this.#setServers(servers);
    else this.#resolution = new Resolution(route.address, resolver, owner.settings, this);
  }

  /** True for pick-first, which uses only the first reachable address of the list. */
  get #pickFirst(): boolean {
    return this.#balancing.loadBalancing === 'pick-first';
  }

  /**
   * Uses another policy from now on. Existing connections stay. With pick-first, a lost connection to an
   * address other than the chosen one is not restored.
   */
  balance(settings: Partial<PolicySettings>): void {
    if (isDeepStrictEqual({ ...this.#balancing, ...settings }, this.#balancing)) return;
    this.#balancing = { ...this.#balancing, ...settings };
    this.#policy = policyOf(this.#balancing);
    this.several = this.#endpoints.length > 1 && !this.#pickFirst;
    this.#update();
    if (this.inUse || this.wanted) this.seek(false);
  }

  /** Uses these settings from now on; undefined restores the settings of the channel. */
  detectOutliers(settings: OutlierConfig | undefined): void {
    const { outlierDetection } = this.#owner.settings;
    this.settings = { ...this.settings, outlierDetection: { ...outlierDetection, ...settings } };
  }

  /**
   * Asks for the health of this service, unless the channel names one. Returns false without a health check.
   */
  checkHealth(service: string | undefined): boolean {
    this.#health?.ask(service);
    return this.settings.healthCheck !== undefined;
  }

  /** The best state of all addresses; `failing` only when no attempt can be made now. */
  get state(): EndpointState {
    if (this.ready.length > 0) return 'ready';
    if (this.#endpoints.length === 0) return this.#resolution?.state ?? 'idle';
    if (this.#health?.pending === true) return 'connecting';
    const order: readonly EndpointState[] = ['verifying', 'connecting', 'idle'];
    return order.find((state) => this.#endpoints.some((each) => each.state === state)) ?? 'failing';
  }

  /** True when, although the state is `failing`, a server has requested a retry within a short time. */
  get comesAgain(): boolean {
    return this.#endpoints.some((each) => each.comesAgain);
  }

  get summary(): readonly AddressSummary[] {
    const doorOf = (connection: Connection): string | undefined => this.#doors.of(connection);
    return this.#groups.map((group) => summaryOf(group, this.#stale, this.#serves, doorOf));
  }

  /** True when the addresses come from an earlier answer because the last query has failed. */
  get #stale(): boolean {
    return this.#resolution?.stale ?? false;
  }

  /** The errors of addresses whose last attempt has failed. */
  get lastError(): RpcError | undefined {
    const endpoints = this.#endpoints.map(({ error }) => error);
    const errors = [this.#resolution?.error, ...endpoints, this.#health?.error];
    return errors.findLast((error) => error !== undefined);
  }

  /** True while calls are in flight. */
  get busy(): boolean {
    return [...this.#endpoints, ...this.#leaving].some((endpoint) => endpoint.busy);
  }

  get wanted(): boolean {
    return this.#owner.wanted && !(this.#pickFirst && this.#picked);
  }

  get deadlines(): Deadlines {
    return this.#owner.deadlines;
  }

  /**
   * Returns the connection that the policy chooses for a call with this metadata, or undefined when no
   * connection has room. After some number of calls this also connects the addresses that have become idle.
   */
  next(room: LinkRoom, metadata: Uint8Array | undefined): ClientLink | undefined {
    if (++this.#calls >= this.ready.length) {
      this.#calls = 0;
      this.#outliers.wake();
      if (this.ready.length < this.#endpoints.length) this.seek(false);
    }
    const link = this.#policy.pick(serverRoom(room), metadata)?.link(room);
    if (link !== undefined) this.current = link;
    return link;
  }

  /** Returns the connection for a call: the choice of the policy, or the only connection. */
  for(room: LinkRoom, metadata: Uint8Array | undefined): ClientLink | undefined {
    return this.several ? this.next(room, metadata) : this.current;
  }

  /**
   * Runs when the connection of a call has ended and the call is back in the queue. If another connection is
   * ready, the call is sent on it now, because an idle connection has no event that would send the call.
   * Otherwise the owner is notified of the state again.
   */
  reconsider(): void {
    if (this.current === undefined) this.#owner.onChange(this.state);
    else this.queue.pumpAfter(this.current.connection.context);
  }

  /**
   * Connects the addresses that have no connection. With `now`, it connects them even during their pauses.
   */
  seek(now: boolean): void {
    if (this.#closed) return;
    if (this.#endpoints.length === 0) {
      if (now) this.#resolution?.askNow();
      else if (this.#resolution?.state === 'idle') this.#resolution.refresh();
    }
    if (this.#pickFirst) {
      this.#pick(now);
      return;
    }
    for (const endpoint of this.#endpoints) {
      if (endpoint.state === 'idle' || (now && endpoint.state === 'failing')) endpoint.connect();
    }
  }

  /**
   * Runs when a caller begins to wait for a connection until `deadlineMs`: connects, or shortens pauses.
   */
  await(deadlineMs: number): void {
    this.seek(false);
    if (!this.wanted) return;
    for (const endpoint of this.#endpoints) endpoint.hurry([deadlineMs]);
  }

  /** One address has been picked; it is connected or connecting. */
  get #picked(): boolean {
    return this.#endpoints.some(({ state }) => state !== 'idle' && state !== 'failing');
  }

  /** Connects the first idle address of the list. When the attempt fails, the next address is tried. */
  #pick(now: boolean): void {
    if (this.#picked) return;
    if (now) for (const endpoint of this.#endpoints) endpoint.forgive();
    this.#endpoints.find(({ state }) => state === 'idle')?.connect();
  }

  /** Runs when the connections were idle for a long time. Each of them is checked with a ping. */
  verify(): void {
    for (const endpoint of this.#endpoints) endpoint.verify();
  }

  /** Resolves when all connections have ended, or after a time limit. */
  async close(reason: string): Promise<void> {
    this.#closed = true;
    this.#outliers.stop();
    this.#health?.stop();
    this.current = undefined;
    this.ready = [];
    this.#resolution?.close();
    await Promise.all([...this.#endpoints, ...this.#leaving].map((endpoint) => endpoint.close(reason)));
  }

  side(): LocalSide {
    return this.#owner.side();
  }

  onChange(endpoint: Endpoint): void {
    // The server of a lost connection may have another address now.
    if (endpoint.state === 'idle' || endpoint.state === 'failing') this.#resolution?.refresh();
    this.#update();
  }

  onGone(endpoint: Endpoint): void {
    this.#leaving.delete(endpoint);
  }

  /** Returns true when at least one of the addresses has a connection. */
  get inUse(): boolean {
    return this.ready.length > 0;
  }

  onServers(servers: readonly Server[]): void {
    const { inUse } = this;
    this.#owner.config?.onServers(servers);
    this.#setServers(servers);
    // If the channel is not in use, the next call connects the addresses. Otherwise the attempts begin before
    // the new state is computed, because the channel would report that it is idle.
    if (inUse || this.wanted) this.seek(false);
    this.#update();
  }

  onResolutionChange(): void {
    this.#update();
  }

  /**
   * Returns whether an address may be ejected. One address may always be ejected, unless it is the last
   * address. Another address may be ejected only while fewer than a tenth of the connected addresses are
   * ejected.
   */
  mayEject(): boolean {
    const ejected = this.#endpoints.filter(({ state }) => state === 'ejected').length;
    const connected = this.#endpoints.filter(({ state }) => state === 'ready').length + ejected;
    if (this.#pickFirst || connected - ejected < 2) return false;
    return ejected === 0 || ejected < ejectedShareMax * connected;
  }

  /**
   * Returns whether the health check says that the server takes calls, or undefined before the first answer.
   */
  readonly #serves = (link: ClientLink): boolean | undefined =>
    this.#health === undefined || this.#health.serves(link);

  #update(): void {
    if (this.#closed) return;
    this.#health?.sync(this.#endpoints.flatMap(({ link }) => (link === undefined ? [] : [link])));
    const inState = (state: EndpointState): ReadyServer[] =>
      this.#groups.flatMap(({ server, endpoints }) => {
        const links = endpoints.flatMap((each) => (each.state === state && each.link ? [each.link] : []));
        const serving = links.filter(this.#serves);
        return serving.length === 0 ? [] : [new ReadyServer(server, serving)];
      });
    let ready = inState('ready');
    // If all addresses are ejected, they are used: a bad answer is better than no answer.
    if (ready.length === 0) ready = inState('ejected');
    this.ready = ready.flatMap(({ links }) => links);
    for (const { link } of this.#endpoints) if (link !== undefined) link.stale = this.#stale;
    if (this.#balancing.loadBalancing === 'weighted-round-robin')
      for (const link of this.ready) takeReports(link, this.#balancing.loadReports);
    this.#policy.update(ready, this.#servers);
    if (this.current === undefined || !this.ready.includes(this.current)) this.current = this.ready[0];
    this.#owner.onChange(this.state);
  }

  #setServers(listed: readonly Server[]): void {
    const { subset, zone, connectionsPerAddress } = this.settings;
    const servers = subsetOf(listed, subsetId(subset), subset.size, zone);
    const known = new Set(this.#endpoints);
    this.#servers = servers;
    this.#doors.update(servers);
    this.#groups = grouped(
      servers,
      connectionsPerAddress,
      known,
      (address) => new Endpoint(address, this.#doors.open(address), this),
    );
    this.#endpoints = this.#groups.flatMap(({ endpoints }) => endpoints);
    this.several = this.#endpoints.length > 1 && !this.#pickFirst;
    for (const endpoint of known) {
      this.#leaving.add(endpoint);
      endpoint.retire();
    }
  }

  #openOf(address: string): Open {
    const { dial, open } = this.#route;
    return open ?? ((side, signal) => openConnection((given) => dial(given, address), side, address, signal));
  }
}
