/**
 * The load-balancing policies by their names, with the options of consistent hashing and their checks. This
 * file is used when a channel is created.
 */

import { clockMs } from '../../clock.ts';
import { isKey, keyOf } from '../../core/metadata-keys.ts';
import type { OptionRules } from '../../core/options.ts';
import { BoundedHash } from '../balancing/bounded-hash.ts';
import { ByReports, type Reporting } from '../balancing/by-reports.ts';
import { InTurn } from '../balancing/in-turn.ts';
import { keyHash, mixed } from '../balancing/key-hash.ts';
import { LeastLoaded } from '../balancing/least-loaded.ts';
import type { Policy } from '../balancing/policy.ts';
import { type Draw, Zones } from '../balancing/zones.ts';
import * as limits from './limits.ts';

export const policyNames = [
  'round-robin',
  'pick-first',
  'least-request',
  'consistent-hash',
  'weighted-round-robin',
] as const;
export type PolicyName = (typeof policyNames)[number];

/** Options of `loadBalancing: 'consistent-hash'`, which sends calls with the same key to the same server. */
export interface ConsistentHash {
  /** Name of the metadata key; calls with the same value go to the same server. Required. */
  readonly metadataKey?: string;
  /**
   * A server takes the calls of its keys until its calls in flight reach this multiple of its share. Further
   * calls go to the next server of the ring. Default 1.25.
   */
  readonly maxLoad?: number;
}

export const consistentHashRules: OptionRules = {
  metadataKey: { kind: 'text', default: '', maxBytes: limits.hashKeyBytes },
  maxLoad: { kind: 'number', range: limits.hashMaxLoad },
};

/** The way in which the reports of servers become weights with `loadBalancing: 'weighted-round-robin'`. */
export interface LoadReports {
  /** Time in ms for which reports must have come over a connection before they are used. Default 10 000. */
  readonly blackoutMs?: number;
  /** Time in ms after which the last report is no longer used. Default 180 000. */
  readonly expirationMs?: number;
  /** Interval in ms at which weights are computed from the reports. Default 1000. */
  readonly updateMs?: number;
  /** Factor with which the share of failed calls is added to the utilization of a server. Default 1. */
  readonly errorPenalty?: number;
}

export const loadReportRules: OptionRules = {
  blackoutMs: { kind: 'integer', range: limits.loadBlackoutMs },
  expirationMs: { kind: 'integer', range: limits.loadExpirationMs },
  updateMs: { kind: 'integer', range: limits.loadUpdateMs },
  errorPenalty: { kind: 'number', range: limits.loadErrorPenalty },
};

export interface PolicySettings {
  readonly loadBalancing: PolicyName;
  readonly consistentHash: Required<ConsistentHash>;
  readonly loadReports: Required<LoadReports>;
  /** Zone of this client, '' for none. */
  readonly zone: string;
  readonly connectionsPerAddress: number;
}

/** Throws a TypeError when the policy and the other options do not fit together. */
export function checkPolicy(what: string, settings: PolicySettings): void {
  const { loadBalancing, consistentHash, connectionsPerAddress } = settings;
  const { metadataKey } = consistentHash;
  if (loadBalancing === 'consistent-hash') {
    if (!isKey(metadataKey.toLowerCase()))
      throw new TypeError(
        `${what}: loadBalancing 'consistent-hash' needs the name of a metadata key: consistentHash: { metadataKey: … }`,
      );
  } else if (metadataKey !== '')
    throw new TypeError(`${what}: consistentHash has no effect without loadBalancing: 'consistent-hash'`);
  if (loadBalancing === 'pick-first' && connectionsPerAddress > 1)
    throw new TypeError(
      `${what}: loadBalancing 'pick-first' has one connection; leave out connectionsPerAddress`,
    );
}

/**
 * Returns the function that draws the zone of a call. With consistent hashing the draw depends on the key, so
 * that all calls with one key go to the same zone.
 */
function drawOf({ loadBalancing, consistentHash }: PolicySettings, random: () => number): Draw {
  if (loadBalancing !== 'consistent-hash') return random;
  const key = keyOf(consistentHash.metadataKey).bytes;
  return (metadata) => {
    const hash = metadata === undefined ? -1 : keyHash(metadata, key);
    return hash < 0 ? random() : mixed(hash) / 2 ** 32;
  };
}

function within<C extends Reporting>(settings: PolicySettings, random: () => number): Policy<C> {
  const { loadBalancing, consistentHash, loadReports } = settings;
  if (loadBalancing === 'consistent-hash')
    return new BoundedHash(keyOf(consistentHash.metadataKey).bytes, consistentHash.maxLoad, random);
  if (loadBalancing === 'weighted-round-robin') return new ByReports(loadReports.updateMs, clockMs, random);
  return loadBalancing === 'least-request' ? new LeastLoaded(random) : new InTurn(random);
}

/** Returns the policy of a channel. `random` returns at least 0 and less than 1. */
export function policyOf<C extends Reporting>(
  settings: PolicySettings,
  random: () => number = Math.random,
): Policy<C> {
  const make = (): Policy<C> => within(settings, random);
  return settings.zone === '' ? make() : new Zones(settings.zone, make, drawOf(settings, random));
}
