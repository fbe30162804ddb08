/**
 * The simulated scenarios: the restart of a region, the latencies of policies, subsets, and keys of
 * consistent hashing. Each scenario has a seed, and gives the same figures in each run. main.ts uses this
 * file to print the figures, and the tests use it to compare the figures with their goals.
 */
import { BoundedHash } from '../../runtime/client/balancing/bounded-hash.ts';
import { subsetOf } from '../../runtime/client/balancing/subset.ts';
import type { PolicyName } from '../../runtime/client/connections/policies.ts';
import { keyOf } from '../../runtime/core/metadata-keys.ts';
import { encodeMetadata } from '../../runtime/core/metadata-wire.ts';
import { Events } from './events.ts';
import { type Chance, FleetClient, FleetLink, FleetServer, settingsFor } from './nodes.ts';

/** Returns numbers of at least 0 and less than 1 from a seed (mulberry32). */
export function chanceOf(seed: number): Chance {
  let state = Math.imul(seed, 0x9e3779b9) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const zoneOf = (i: number): string => `zone-${i % 3}`;

export interface Fleet {
  readonly seed: number;
  readonly clients: number;
  readonly servers: number;
  readonly subset: number;
}

/**
 * Simulates a restart of one of three regions: all its servers stop together and come back after `downMs`.
 * Returns the number of connections that came back in each second after that, and the number of calls that
 * found no connection during that time. Each client makes a call a second.
 */
export function regionRestart({ seed, clients, servers, subset }: Fleet, downMs: number) {
  const chance = chanceOf(seed);
  const events = new Events();
  const all = Array.from(
    { length: servers },
    (_, i) => new FleetServer(`server-${i}:5000`, zoneOf(i), events, chance, 1, 64),
  );
  const perSecond = new Array<number>(60).fill(0);
  const fleet = Array.from(
    { length: clients },
    (_, i) =>
      new FleetClient(`client-${i}`, all, subset, settingsFor('least-request', zoneOf(i)), events, chance),
  );
  let failed = 0;
  let calls = 0;
  const endMs = downMs + perSecond.length * 1000;
  const talk = (client: FleetClient): void => {
    if (events.nowMs >= downMs + 5_000) return;
    client.call((ms) => {
      ++calls;
      if (ms < 0) ++failed;
    });
    events.after(1000, () => talk(client));
  };
  for (const client of fleet) events.after(chance() * 1000, () => talk(client));
  const region = all.filter(({ zone }) => zone === 'zone-0');
  for (const server of region) server.up = false;
  const back = (): void => {
    ++perSecond[Math.floor((events.nowMs - downMs) / 1000)]!;
  };
  for (const client of fleet) client.lose(back);
  events.after(downMs, () => {
    for (const server of region) server.up = true;
  });
  events.runUntil(endMs);
  const lost = fleet.reduce(
    (sum, { links }) => sum + links.filter(({ zone }) => zone === 'zone-0').length,
    0,
  );
  return { perSecond, lost, calls, failed };
}

/**
 * Returns the number of seconds until all but a hundredth of the connections were back, and the rate at which
 * they would have come back evenly in that time.
 */
export function evenness(perSecond: readonly number[], lost: number): { fullest: number; steady: number } {
  let sum = 0;
  let seconds = 0;
  while (sum < 0.99 * lost && seconds < perSecond.length) sum += perSecond[seconds++]!;
  return { fullest: Math.max(...perSecond), steady: sum / seconds };
}

export interface Latencies {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
}

export interface LoadShape {
  /** The share of servers that take `slowness` times as long for a call. */
  readonly slowShare: number;
  readonly slowness: number;
  /** Number of calls that a client makes at once. */
  readonly burst: number;
  /** Share of the servers' capacity that is used when all servers have their normal speed. */
  readonly utilization: number;
}

/** Latencies of calls with a policy, in ms. A call takes 1 ms on average on one of four workers. */
export function latencies(fleet: Fleet, policy: PolicyName, shape: LoadShape, seconds: number): Latencies {
  const chance = chanceOf(fleet.seed);
  const events = new Events();
  const workers = 4;
  const slow = Math.round(fleet.servers * shape.slowShare);
  const all = Array.from(
    { length: fleet.servers },
    (_, i) => new FleetServer(`server-${i}:5000`, '', events, chance, i < slow ? shape.slowness : 1, workers),
  );
  const clients = Array.from(
    { length: fleet.clients },
    (_, i) => new FleetClient(`client-${i}`, all, fleet.subset, settingsFor(policy), events, chance),
  );
  const perClientMs = (fleet.clients * shape.burst) / (fleet.servers * workers * shape.utilization);
  const times: number[] = [];
  const warmMs = seconds * 200;
  const talk = (client: FleetClient): void => {
    if (events.nowMs >= seconds * 1000) return;
    const counts = events.nowMs >= warmMs;
    for (let i = 0; i < shape.burst; ++i) client.call((ms) => void (counts && times.push(ms)));
    events.after(-Math.log(1 - chance()) * perClientMs, () => talk(client));
  };
  for (const client of clients) events.after(chance() * perClientMs, () => talk(client));
  events.runUntil(seconds * 1000 + 5_000);
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.floor(times.length * share)]!;
  return { p50: at(0.5), p99: at(0.99), p999: at(0.999) };
}

/**
 * Returns the number of sessions of each server with subsets, and how many sessions move when one server
 * leaves.
 */
export function subsets({ clients, servers, subset }: Fleet) {
  const all = Array.from({ length: servers }, (_, i) => ({ address: `server-${i}:5000`, weight: 1 }));
  const counts = new Map(all.map(({ address }) => [address, 0]));
  let moved = 0;
  const left = all.slice(1);
  for (let i = 0; i < clients; ++i) {
    const chosen = subsetOf(all, `client-${i}`, subset, '');
    for (const { address } of chosen) counts.set(address, counts.get(address)! + 1);
    moved += subsetOf(left, `client-${i}`, subset, '').filter((each) => !chosen.includes(each)).length;
  }
  const mean = (clients * Math.min(subset, servers)) / servers;
  return { maxToMean: Math.max(...counts.values()) / mean, moved, share: counts.get(all[0]!.address)! };
}

/**
 * Keeps 200 calls of a gateway in flight at ten servers with caches. Half of the calls have the same key.
 * Returns the mean load of the busiest server in relation to the mean load of all servers, and the share of
 * calls whose server had already seen their key.
 */
export function hotKey(seed: number, maxLoad: number, calls: number) {
  const chance = chanceOf(seed);
  const events = new Events();
  const inFlight = 200;
  const servers = Array.from(
    { length: 10 },
    (_, i) => new FleetServer(`server-${i}:5000`, '', events, chance, 1, 1000),
  );
  const links = servers.map((server) => new FleetLink(server, chance));
  const policy = new BoundedHash<FleetLink>(keyOf('session').bytes, maxLoad, chance);
  policy.update(links, links);
  const caches = new Map(links.map((link) => [link, new Set<string>()]));
  const loads = new Map(links.map((link) => [link, 0]));
  let hits = 0;
  let made = 0;
  const next = (): void => {
    if (made++ >= calls) return;
    const key = chance() < 0.5 ? 'hot' : `user-${Math.floor(chance() * 2000)}`;
    const link = policy.pick(() => true, encodeMetadata([['session', key]]))!;
    const cache = caches.get(link)!;
    if (cache.delete(key)) ++hits;
    cache.add(key);
    if (cache.size > 500) cache.delete(cache.values().next().value!);
    ++link.load;
    for (const each of links) loads.set(each, loads.get(each)! + each.load);
    link.server.call(() => {
      --link.load;
      next();
    });
  };
  for (let i = 0; i < inFlight; ++i) next();
  events.runUntil(Number.MAX_SAFE_INTEGER);
  const mean = [...loads.values()].reduce((sum, load) => sum + load, 0) / links.length;
  return { busiestToMean: Math.max(...loads.values()) / mean, hitRate: hits / calls };
}
