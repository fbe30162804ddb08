/**
 * The connections of a channel: its addresses, which come from a list or a resolver, whose turn it is among those that are ready, and what they add
 * up to. Owned by a channel, which is told of every change.
 */
import type { Duplex } from 'node:stream';
import type { FabricName } from '../call/contexts.ts';
import type { RpcError } from '../call/rpc-error.ts';
import type { Unsent } from '../call/unsent.ts';
import type { LocalSide } from '../control/session-setup.ts';
import type { ClientLink } from './client-link.ts';
import { Endpoint, type EndpointOwner, type EndpointSettings, type EndpointState } from './endpoint.ts';
import { Resolution, type ResolutionOwner, type ResolutionSettings } from './resolution.ts';
import type { Target } from './resolver.ts';

/** What a channel needs of the world: how to reach an address, and what ends with it. */
export interface Route extends Omit<Target, 'name'> {
  /** For people; the address itself when there is no list and no resolver. */
  readonly address: string;
  readonly dial: (signal: AbortSignal, address: string) => Promise<Duplex>;
  /** Instead of those that the options allow. */
  readonly fabrics?: readonly FabricName[];
  readonly onClosed?: () => Promise<void>;
}

/** One address of a channel, as it is now. */
export interface AddressSummary {
  readonly address: string;
  /** `ejected`: connected, but left out for a while because of bad answers. */
  readonly state: EndpointState;
  /** Why the last attempt to connect failed; undefined since one has succeeded. */
  readonly error: RpcError | undefined;
}

export interface ConnectionsOwner {
  readonly settings: EndpointSettings & ResolutionSettings;
  readonly waiting: { readonly size: number };
  readonly wanted: boolean;
  side(): LocalSide;
  pump(): void;
  takeBack(call: Unsent): boolean;
  /** `state` is what the connections add up to. */
  onChange(state: EndpointState): void;
}

export class Connections implements EndpointOwner, ResolutionOwner {
  readonly settings: EndpointSettings & ResolutionSettings;
  readonly waiting: { readonly size: number };
  /** Those that take calls. */
  ready: ClientLink[] = [];
  /** The one for the next call. */
  current: ClientLink | undefined;
  /** More than one address: after each call `rotate()`. */
  several = false;

  readonly #route: Route;
  readonly #owner: ConnectionsOwner;
  readonly #resolution: Resolution | undefined;
  #endpoints: Endpoint[] = [];
  /** Those that are no longer in use, until their last call has ended. */
  readonly #leaving = new Set<Endpoint>();
  #turn = 0;
  #closed = false;

  constructor(route: Route, owner: ConnectionsOwner) {
    this.#route = route;
    this.#owner = owner;
    this.settings = owner.settings;
    this.waiting = owner.waiting;
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
    return this.#owner.wanted;
  }

  /** The next connection's turn. An address that is idle by now gets an attempt beside it. */
  rotate(): void {
    if (++this.#turn >= this.ready.length) {
      this.#turn = 0;
      if (this.ready.length < this.#endpoints.length) this.seek(false);
    }
    this.current = this.ready[this.#turn];
  }

  /** Begins to connect what has no connection; `now`: even if its pause is not over. */
  seek(now: boolean): void {
    if (this.#closed) return;
    if (this.#endpoints.length === 0) {
      if (now) this.#resolution?.askNow();
      else if (this.#resolution?.state === 'idle') this.#resolution.refresh();
    }
    for (const endpoint of this.#endpoints) {
      if (endpoint.state === 'idle' || (now && endpoint.state === 'failing')) endpoint.connect();
    }
  }

  /** Nothing has come or gone for long. */
  verify(): void {
    for (const endpoint of this.#endpoints) endpoint.verify();
  }

  /** Resolves when nothing of them is left, or has had long enough to go. */
  async close(reason: string): Promise<void> {
    this.#closed = true;
    this.current = undefined;
    this.ready = [];
    this.#resolution?.close();
    await Promise.all([...this.#endpoints, ...this.#leaving].map((endpoint) => endpoint.close(reason)));
  }

  side(): LocalSide {
    return this.#owner.side();
  }

  pump(): void {
    this.#owner.pump();
  }

  takeBack(call: Unsent): boolean {
    return this.#owner.takeBack(call);
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

  /** At most half of the addresses that are connected. */
  mayEject(): boolean {
    const ejected = this.#endpoints.filter(({ state }) => state === 'ejected').length;
    return 2 * (ejected + 1) <= this.ready.length + ejected;
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
    const { dial } = this.#route;
    this.#endpoints = addresses.map(
      (address) => known.get(address) ?? new Endpoint(address, (signal) => dial(signal, address), this),
    );
    this.several = this.#endpoints.length > 1;
    for (const [address, endpoint] of known) {
      if (addresses.includes(address)) continue;
      this.#leaving.add(endpoint);
      endpoint.retire();
    }
  }
}
