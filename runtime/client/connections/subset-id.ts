/**
 * The options of the subset of servers that a channel uses, their checks, and the id of this client. The
 * connections of a channel use this file.
 */
import { randomUUID } from 'node:crypto';
import type { OptionRules } from '../../core/options.ts';
import * as limits from './limits.ts';

/** The number of servers that a channel uses, and the id of the client, which determines the choice. */
export interface Subset {
  /** Number of servers that this channel connects to. Default 0 for all. */
  readonly size?: number;
  /**
   * Id of this client among all clients, such as the name of its pod. The same id chooses the same servers
   * again after a restart. Default: a random id for each JS thread.
   */
  readonly clientId?: string;
}

export const subsetRules: OptionRules = {
  size: { kind: 'integer', range: limits.subsetSize },
  clientId: { kind: 'text', default: '', maxBytes: limits.subsetIdBytes },
};

export interface SubsetSettings {
  readonly subset: Required<Subset>;
  /** Zone of this client, '' for none. */
  readonly zone: string;
}

const ownId = randomUUID();

export function subsetId({ clientId }: Required<Subset>): string {
  return clientId === '' ? ownId : clientId;
}
