/**
 * The load-balancing policies by their names, with the options of consistent hashing and their checks. Used
 * when a channel is created.
 */

import { isKey, keyOf } from '../../core/metadata-keys.ts';
import type { OptionRules } from '../../core/options.ts';
import { BoundedHash } from '../balancing/bounded-hash.ts';
import { InTurn } from '../balancing/in-turn.ts';
import { LeastLoaded } from '../balancing/least-loaded.ts';
import type { Candidate, Policy } from '../balancing/policy.ts';
import * as limits from './limits.ts';

export const policyNames = ['round-robin', 'pick-first', 'least-request', 'consistent-hash'] as const;
type PolicyName = (typeof policyNames)[number];

/** Which calls belong together with `loadBalancing: 'consistent-hash'`, and how far. */
export interface ConsistentHash {
  /** Name of the metadata key; calls with the same value go to the same server. Required. */
  readonly metadataKey?: string;
  /**
   * A server takes calls of its keys up to this multiple of its share of the calls in flight; further ones
   * go to the next server of the ring. Default 1.25.
   */
  readonly maxLoad?: number;
}

export const consistentHashRules: OptionRules = {
  metadataKey: { kind: 'text', default: '', maxBytes: limits.hashKeyBytes },
  maxLoad: { kind: 'number', range: limits.hashMaxLoad },
};

export interface PolicySettings {
  readonly loadBalancing: PolicyName;
  readonly consistentHash: Required<ConsistentHash>;
}

/** Throws a TypeError when policy and options of consistent hashing do not fit. */
export function checkPolicy(what: string, { loadBalancing, consistentHash }: PolicySettings): void {
  const { metadataKey } = consistentHash;
  if (loadBalancing === 'consistent-hash') {
    if (!isKey(metadataKey.toLowerCase()))
      throw new TypeError(
        `${what}: loadBalancing 'consistent-hash' needs the name of a metadata key: consistentHash: { metadataKey: … }`,
      );
  } else if (metadataKey !== '')
    throw new TypeError(`${what}: consistentHash has no effect without loadBalancing: 'consistent-hash'`);
}

export function policyOf<C extends Candidate>({ loadBalancing, consistentHash }: PolicySettings): Policy<C> {
  if (loadBalancing === 'consistent-hash')
    return new BoundedHash(keyOf(consistentHash.metadataKey).bytes, consistentHash.maxLoad);
  return loadBalancing === 'least-request' ? new LeastLoaded() : new InTurn();
}
