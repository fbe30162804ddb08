/**
 * The nodes of the simulated fleet, at the level of messages. Servers have workers and a queue. Clients
 * choose servers, connect again and make calls. Subsets, policies and pauses are the runtime's own code. Only
 * the network and the time are simulated.
 */
import type { Reporting } from '../../runtime/client/balancing/by-reports.ts';
import type { Policy } from '../../runtime/client/balancing/policy.ts';
import { subsetOf } from '../../runtime/client/balancing/subset.ts';
import { Backoff } from '../../runtime/client/connections/backoff.ts';
import { type PolicyName, type PolicySettings, policyOf } from '../../runtime/client/connections/policies.ts';
import type { Events } from './events.ts';

export type Chance = () => number;

/** The time in ms that a message needs from one node to another. */
const wireMs = 0.1;

export class FleetServer {
  readonly address: string;
  readonly zone: string;
  up = true;
  readonly #events: Events;
  readonly #chance: Chance;
  readonly #meanMs: number;
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** Calls take `meanMs` on average, exponentially distributed, on one of the workers. */
  constructor(
    address: string,
    zone: string,
    events: Events,
    chance: Chance,
    meanMs: number,
    workers: number,
  ) {
    this.address = address;
    this.zone = zone;
    this.#events = events;
    this.#chance = chance;
    this.#meanMs = meanMs;
    this.#free = workers;
  }

  /** Runs a call now, or when a worker is free; `done` is called when the call has ended. */
  call(done: () => void): void {
    const run = (): void => {
      this.#events.after(-Math.log(1 - this.#chance()) * this.#meanMs, () => {
        const next = this.#waiting.shift();
        if (next === undefined) ++this.#free;
        else next();
        done();
      });
    };
    if (this.#free === 0) this.#waiting.push(run);
    else {
      --this.#free;
      run();
    }
  }
}

/** A connection of a client. */
export class FleetLink implements Reporting {
  readonly weight = 1;
  readonly server: FleetServer;
  load = 0;
  connected = false;
  readonly backoff: Backoff;

  constructor(server: FleetServer, chance: Chance) {
    this.server = server;
    // These settings are those of a channel's endpoints, with the defaults of its options.
    this.backoff = new Backoff(50, 10_000, chance, true);
  }

  get address(): string {
    return this.server.address;
  }

  get zone(): string {
    return this.server.zone;
  }

  reportedWeight(): number {
    return 0;
  }
}

const anyRoom = (): boolean => true;

export function settingsFor(loadBalancing: PolicyName, zone = '', metadataKey = ''): PolicySettings {
  return {
    loadBalancing,
    zone,
    consistentHash: { metadataKey, maxLoad: 1.25 },
    loadReports: { blackoutMs: 10_000, expirationMs: 180_000, updateMs: 1_000, errorPenalty: 1 },
    connectionsPerAddress: 1,
  };
}

export class FleetClient {
  readonly id: string;
  readonly links: FleetLink[];
  readonly #events: Events;
  readonly #policy: Policy<FleetLink>;

  constructor(
    id: string,
    servers: readonly FleetServer[],
    size: number,
    settings: PolicySettings,
    events: Events,
    chance: Chance,
  ) {
    this.id = id;
    this.#events = events;
    this.#policy = policyOf<FleetLink>(settings, chance);
    const links = servers.map((server) => ({
      address: server.address,
      zone: server.zone,
      weight: 1,
      server,
    }));
    this.links = subsetOf(links, id, size, settings.zone).map(({ server }) => new FleetLink(server, chance));
    for (const link of this.links) link.connected = true;
    this.#update();
  }

  /**
   * The connections to servers that have gone are lost. `onReconnect` is called for each client that comes
   * back.
   */
  lose(onReconnect: () => void): void {
    for (const link of this.links) {
      if (link.server.up || !link.connected) continue;
      link.connected = false;
      this.#retry(link, onReconnect);
    }
    this.#update();
  }

  #retry(link: FleetLink, onReconnect: () => void): void {
    this.#events.after(link.backoff.next(), () => {
      if (!link.server.up) {
        this.#retry(link, onReconnect);
        return;
      }
      link.backoff.reset();
      link.connected = true;
      this.#update();
      onReconnect();
    });
  }

  /** Makes a call. `done` gets the time of the call in ms, or -1 when there is no connection. */
  call(done: (ms: number) => void): void {
    const link = this.#policy.pick(anyRoom, undefined);
    if (link === undefined) {
      done(-1);
      return;
    }
    const beginMs = this.#events.nowMs;
    ++link.load;
    const answered = (): void => {
      --link.load;
      done(this.#events.nowMs - beginMs);
    };
    this.#events.after(wireMs, () => link.server.call(() => this.#events.after(wireMs, answered)));
  }

  #update(): void {
    this.#policy.update(
      this.links.filter(({ connected }) => connected),
      this.links,
    );
  }
}
