/**
 * Converts the load-balancing policies of a service configuration, which have gRPC's names, to settings of a
 * channel. Policies that gRPC does not have keep their names from the option `loadBalancing`. This file is
 * used when a service configuration is checked.
 */
import { isKey } from '../../core/metadata-keys.ts';
import * as limits from '../connections/limits.ts';
import type { OutlierConfig } from '../connections/outliers.ts';
import type { ConsistentHash, LoadReports, PolicyName } from '../connections/policies.ts';
import type { Fields } from './config-values.ts';
import { outlierPolicy, outliersOf } from './outlier-config.ts';

/** The settings of a channel that follow from a policy. */
export interface BalancingConfig {
  readonly loadBalancing: PolicyName;
  readonly consistentHash?: Required<ConsistentHash>;
  readonly loadReports?: Required<LoadReports>;
}

function wholeMs(given: Fields, name: string, { default: byDefault, min, max }: Range): number {
  const ms = given.durationMs(name);
  return ms === undefined ? byDefault : Math.min(max, Math.max(min, Math.round(ms)));
}
interface Range {
  readonly default: number;
  readonly min: number;
  readonly max: number;
}

function weighted(given: Fields): BalancingConfig {
  const { min, max, default: penalty } = limits.loadErrorPenalty;
  return {
    loadBalancing: 'weighted-round-robin',
    loadReports: {
      blackoutMs: wholeMs(given, 'blackoutPeriod', limits.loadBlackoutMs),
      expirationMs: wholeMs(given, 'weightExpirationPeriod', limits.loadExpirationMs),
      updateMs: wholeMs(given, 'weightUpdatePeriod', limits.loadUpdateMs),
      errorPenalty: given.number('errorUtilizationPenalty', min, max) ?? penalty,
    },
  };
}

/**
 * Reads the configuration of consistent hashing. `keyField` is the field that contains the name of the
 * metadata key. Its name differs between gRPC's ring hash and our policy.
 */
function hashed(given: Fields, keyField: string): BalancingConfig {
  const metadataKey = given.text(keyField);
  if (!isKey(metadataKey.toLowerCase())) throw given.fault(keyField, 'the name of a metadata key');
  const { min, max, default: maxLoad } = limits.hashMaxLoad;
  return {
    loadBalancing: 'consistent-hash',
    consistentHash: { metadataKey, maxLoad: given.number('maxLoad', min, max) ?? maxLoad },
  };
}

const policies: Readonly<Record<string, (given: Fields) => BalancingConfig>> = {
  pick_first: () => ({ loadBalancing: 'pick-first' }),
  round_robin: () => ({ loadBalancing: 'round-robin' }),
  weighted_round_robin: weighted,
  least_request_experimental: () => ({ loadBalancing: 'least-request' }),
  ring_hash_experimental: (given) => hashed(given, 'requestHashHeader'),
  'pick-first': () => ({ loadBalancing: 'pick-first' }),
  'round-robin': () => ({ loadBalancing: 'round-robin' }),
  'weighted-round-robin': weighted,
  'least-request': () => ({ loadBalancing: 'least-request' }),
  'consistent-hash': (given) => hashed(given, 'metadataKey'),
};

/** The first known entry of a list of policies, by its name. */
interface Entry {
  readonly name: string;
  readonly given: Fields;
}

/** Returns undefined for a missing or empty list. Throws when there is a list without a known policy. */
function firstKnown(config: Fields, field: string, names: readonly string[]): Entry | undefined {
  const list = config.objects(field);
  for (const entry of list) {
    const [name, ...others] = entry.names;
    if (name === undefined || others.length > 0)
      throw config.fault(field, 'a list of objects with one policy each');
    if (names.includes(name)) return { name, given: entry.object(name)! };
  }
  if (list.length > 0) throw config.fault(field, `with a known policy: ${names.join(', ')}`);
  return undefined;
}

/** The result of parsing `loadBalancingConfig`. */
export interface BalancingConfigs {
  readonly balancing: BalancingConfig | undefined;
  readonly outliers: OutlierConfig | undefined;
}

/**
 * Reads the policy and the outlier detection from a load-balancing configuration. `report` gets a line for
 * each field that has no effect.
 */
export function balancingOf(config: Fields, report: (line: string) => void): BalancingConfigs {
  const names = Object.keys(policies);
  const first = firstKnown(config, 'loadBalancingConfig', [...names, outlierPolicy]);
  const detects = first?.name === outlierPolicy;
  const policy = detects ? firstKnown(first.given, 'childPolicy', names) : first;
  return {
    balancing: policy && policies[policy.name]!(policy.given),
    outliers: detects ? outliersOf(first.given, report) : undefined,
  };
}
