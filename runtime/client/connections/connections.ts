/**
 * The connections of a channel: its addresses, which come from a list or a resolver, whose turn it is among
 * those that are ready, and what they add up to. Owned by a channel, which is told of every change.
 */

import type { Duplex } from 'node:stream';
import { openConnection } from '../../control/handshake/client-handshake.ts';
import type { LocalSide } from '../../control/handshake/session-setup.ts';
import type { RpcError } from '../../core/errors/rpc-error.ts';
import type { FabricName } from '../../fabrics.ts';
import type { CallQueue } from '../queue/call-queue.ts';
import type { Deadlines } from './awaited-pause.ts';
import type { ClientLink } from './client-link.ts';
import {
  Endpoint,
  type EndpointOwner,
  type EndpointSettings,
  type EndpointState,
  type Open,
} from './endpoint.ts';
import { ejectedShareMax } from './limits.ts';
import { type OutlierSettings, Outliers } from './outliers.ts';
import { Resolution, type ResolutionOwner, type ResolutionSettings } from './resolution.ts';
import type { Target } from './resolver.ts';
import { type Turns, turns } from './turns.ts';

/** What a channel needs of the world: how to reach an address, and what ends with it. */
export interface Route extends Omit<Target, 'name' | 'host'> {
  /** For people; the address itself when there is no list and no resolver. */
  readonly address: string;
  readonly dial: (signal: AbortSignal, address: string) => Promise<Duplex>;
  /** Instead of dialling: a connection that somebody else has made (reverse/). */
  readonly open?: Open;
  /** Instead of those that the options allow. */
  readonly fabrics?: readonly FabricName[];
  readonly onClosed?: () => Promise<void>;
  /** Of its own, where addresses do not say who is reached. */
  readonly turns?: Turns;
}

/** One address of a channel, as it is now. */
export interface AddressSummary {
  readonly address: string;
  /** `ejected`: connected, but left out for a while because of bad answers. */
  readonly state: EndpointState;
  /** Why the last attempt to connect failed; undefined since one has succeeded. */
  readonly error: RpcError | undefined;
}

export interface PolicySettings extends OutlierSettings {
  readonly loadBalancing: 'round-robin' | 'pick-first';
}
export type ConnectionsSettings = EndpointSettings & ResolutionSettings & PolicySettings;

export interface ConnectionsOwner {
  readonly settings: ConnectionsSettings;
  /** Where its calls wait. */
  readonly queue: CallQueue;
  readonly wanted: boolean;
  /** Deadlines of the calls that wait. */
  readonly deadlines: Deadlines;
  side(): LocalSide;
  /** `state` is what the connections add up to. */
  onChange(state: EndpointState): void;
}

export class Connections implements EndpointOwner, ResolutionOwner {
  readonly settings: ConnectionsSettings;
  readonly queue: CallQueue;
  readonly turns: Turns;
  /** Those that take calls. */
  ready: ClientLink[] = [];
  /** The one for the next call. */
  current: ClientLink | undefined;
  /** More than one address takes calls: after each `rotate()`. */
  several = false;

  readonly #route: Route;
  readonly #owner: ConnectionsOwner;
  readonly #resolution: Resolution | undefined;
  /** One address at a time, the first of the list that can be reached. */
  readonly #pickFirst: boolean;
  readonly #outliers: Outliers;
  #endpoints: Endpoint[] = [];
  /** Those that are no longer in use, until their last call has ended. */
  readonly #leaving = new Set<Endpoint>();
  #turn = 0;
  #closed = false;

  constructor(route: Route, owner: ConnectionsOwner) {
    this.#route = route;
    this.#owner = owner;
    this.settings = owner.settings;
    this.queue = owner.queue;
    this.turns = route.turns ?? turns;
    this.#pickFirst = owner.settings.loadBalancing === 'pick-first';
    this.#outliers = new Outliers(owner.settings, () => this.#endpoints);
    const { resolver, addresses = [route.address] } = route;
    if (resolver === undefined) this.#setAddresses(addresses);
    else this.#resolution = new Resolution(route.address, resolver, owner.settings, this);
  }

  /** The best that an address is in; `failing` only when no attempt can be made now. */
  get state(): EndpointState {
    if (this.ready.length > 0) return 'ready';
    if (this.#endpoints.length === 0) return this.#resolution?.state ?? 'idle';
    const order: readonly EndpointState[] = ['verifying', 'connecting', 'idle'];
    return order.find((state) => this.#endpoints.some((each) => each.state === state)) ?? 'failing';
  }

  /** While it is `failing`: a server has said when to come again, and that is soon. */
  get comesAgain(): boolean {
    return this.#endpoints.some((each) => each.comesAgain);
  }

  get summary(): readonly AddressSummary[] {
    return this.#endpoints.map(({ address, state, error }) => ({ address, state, error }));
  }

  /** Of the attempts that failed and were not followed by one that did not. */
  get lastError(): RpcError | undefined {
    const errors = [this.#resolution?.error, ...this.#endpoints.map(({ error }) => error)];
    return errors.findLast((error) => error !== undefined);
  }

  /** Calls are in flight. */
  get busy(): boolean {
    return [...this.#endpoints, ...this.#leaving].some((endpoint) => endpoint.busy);
  }

  get wanted(): boolean {
    return this.#owner.wanted && !(this.#pickFirst && this.#picked);
  }

  get deadlines(): Deadlines {
    return this.#owner.deadlines;
  }

  /** The next connection's turn. An address that is idle by now gets an attempt beside it. */
  rotate(): void {
    if (++this.#turn >= this.ready.length) {
      this.#turn = 0;
      this.#outliers.wake();
      if (this.ready.length < this.#endpoints.length) this.seek(false);
    }
    this.current = this.ready[this.#turn];
  }

  /**
   * A call has come back to the queue. Without a connection, the owner is told once more how things are. With
   * one, the call goes there: no event of a connection at rest would send it, and its own has had its last
   * one.
   */
  reconsider(): void {
    if (this.current === undefined) this.#owner.onChange(this.state);
    else this.queue.pumpAfter(this.current.connection.context);
  }

  /** Begins to connect what has no connection; `now`: even if its pause is not over. */
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
   * Somebody waits for a connection from now on, until `deadlineMs`: begins to connect, or makes pauses
   * shorter.
   */
  await(deadlineMs: number): void {
    this.seek(false);
    if (!this.wanted) return;
    for (const endpoint of this.#endpoints) endpoint.hurry([deadlineMs]);
  }

  /** One has been picked: it is connected, or about to be. */
  get #picked(): boolean {
    return this.#endpoints.some(({ state }) => state !== 'idle' && state !== 'failing');
  }

  /** Those behind it have their turn when it fails. */
  #pick(now: boolean): void {
    if (this.#picked) return;
    if (now) for (const endpoint of this.#endpoints) endpoint.forgive();
    this.#endpoints.find(({ state }) => state === 'idle')?.connect();
  }

  /** Nothing has come or gone for long. */
  verify(): void {
    for (const endpoint of this.#endpoints) endpoint.verify();
  }

  /** Resolves when nothing of them is left, or has had long enough to go. */
  async close(reason: string): Promise<void> {
    this.#closed = true;
    this.#outliers.stop();
    this.current = undefined;
    this.ready = [];
    this.#resolution?.close();
    await Promise.all([...this.#endpoints, ...this.#leaving].map((endpoint) => endpoint.close(reason)));
  }

  side(): LocalSide {
    return this.#owner.side();
  }

  onChange(endpoint: Endpoint): void {
    // What lost its connection may have moved.
    if (endpoint.state === 'idle' || endpoint.state === 'failing') this.#resolution?.refresh();
    this.#update();
  }

  onGone(endpoint: Endpoint): void {
    this.#leaving.delete(endpoint);
  }

  onAddresses(addresses: readonly string[]): void {
    const inUse = this.ready.length > 0;
    this.#setAddresses(addresses);
    this.#update();
    // Of a channel that nobody uses, the next call connects them.
    if (inUse || this.wanted) this.seek(false);
  }

  onResolutionChange(): void {
    this.#update();
  }

  /** One always, but not the last, and no more while a tenth of those that are connected are left out. */
  mayEject(): boolean {
    const ejected = this.#endpoints.filter(({ state }) => state === 'ejected').length;
    const connected = this.#endpoints.filter(({ state }) => state === 'ready').length + ejected;
    if (this.#pickFirst || connected - ejected < 2) return false;
    return ejected === 0 || ejected < ejectedShareMax * connected;
  }

  #update(): void {
    if (this.#closed) return;
    const links = (state: EndpointState): ClientLink[] =>
      this.#endpoints.flatMap((each) => (each.state === state && each.link ? [each.link] : []));
    this.ready = links('ready');
    // Better a bad answer than none.
    if (this.ready.length === 0) this.ready = links('ejected');
    if (this.#turn >= this.ready.length) this.#turn = 0;
    this.current = this.ready[this.#turn];
    this.#owner.onChange(this.state);
  }

  #setAddresses(addresses: readonly string[]): void {
    const known = new Map(this.#endpoints.map((endpoint) => [endpoint.address, endpoint]));
    this.#endpoints = addresses.map(
      (address) => known.get(address) ?? new Endpoint(address, this.#openOf(address), this),
    );
    this.several = this.#endpoints.length > 1 && !this.#pickFirst;
    for (const [address, endpoint] of known) {
      if (addresses.includes(address)) continue;
      this.#leaving.add(endpoint);
      endpoint.retire();
    }
  }

  #openOf(address: string): Open {
    const { dial, open } = this.#route;
    return open ?? ((side, signal) => openConnection((given) => dial(given, address), side, address, signal));
  }
}
