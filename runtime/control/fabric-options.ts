/**
 * Determines which fabrics a server or channel may use, and how verbs chooses its device. The options of the
 * server or channel take precedence over the environment. client-handshake.ts and server-handshake.ts choose
 * the fabric for each connection.
 */
import { checkedValue, type OptionRule, type OptionRules } from '../core/options.ts';
import { type Fabric, type FabricName, fabricNames, fabricRow } from '../fabrics.ts';
import type { VerbsOptions } from '../native/native.ts';
import type { LocalSide } from './handshake/session-setup.ts';
import { whyNoVerbs } from './verbs-devices.ts';
import * as verbsLimits from './verbs-limits.ts';

export interface FabricOptions {
  /**
   * The fabrics that connections may use. `auto` uses shared memory when both processes are on one host (for
   * two users or containers only over a unix socket). Otherwise it uses RDMA devices if both sides have one,
   * and TCP if not. A name allows only that fabric. A list allows several fabrics, in order of preference.
   * Default: the environment variable RDMA_RPC_FABRIC, or `auto`.
   */
  fabric?: 'auto' | Fabric | readonly Fabric[];
  /** The way in which the verbs fabric chooses its device and connects. */
  verbs?: VerbsSettings;
  /**
   * With `session`, each session gets a context of its own (protection domain, completion queue, arena,
   * caches), which is closed with the session. With `context` (default), the sessions of a thread share a
   * context.
   */
  isolation?: 'context' | 'session';
}

/**
 * Options of the verbs fabric. The environment variables RDMA_RPC_DEVICE, RDMA_RPC_PORT and
 * RDMA_RPC_GID_INDEX are the defaults of `device`, `port` and `gidIndex`. Without these variables, the
 * address of the sideband connection determines the choice.
 */
export type VerbsSettings = Omit<VerbsOptions, 'address'>;

export const verbsRules = {
  device: { kind: 'text', default: '', maxBytes: verbsLimits.verbsDeviceBytes },
  port: { kind: 'integer', range: verbsLimits.verbsPort },
  gidIndex: { kind: 'integer', range: verbsLimits.verbsGidIndex },
  pkeyIndex: { kind: 'integer', range: verbsLimits.verbsPkeyIndex },
  connect: { kind: 'choice', values: ['auto', 'cm', 'sideband'], default: 'auto' },
  connectTimeoutMs: { kind: 'integer', range: verbsLimits.verbsConnectTimeoutMs },
  ackTimeout: { kind: 'integer', range: verbsLimits.verbsAckTimeout },
  retryCount: { kind: 'integer', range: verbsLimits.verbsRetryCount },
  rnrRetry: { kind: 'integer', range: verbsLimits.verbsRnrRetry },
  trafficClass: { kind: 'integer', range: verbsLimits.verbsTrafficClass },
  serviceLevel: { kind: 'integer', range: verbsLimits.verbsServiceLevel },
  tos: { kind: 'integer', range: verbsLimits.verbsTrafficClass },
} as const satisfies OptionRules;

export const fabricRules = {
  fabric: { kind: 'choices', values: fabricNames, default: 'auto' },
  verbs: { kind: 'options', rules: verbsRules },
  isolation: { kind: 'choice', values: ['context', 'session'], default: 'context' },
} as const satisfies OptionRules;

/** The options in the form that `checkedOptions` returns. */
export interface CheckedFabricOptions {
  readonly fabric: 'auto' | Fabric | readonly Fabric[];
  readonly verbs: VerbsSettings;
  readonly isolation: 'context' | 'session';
}

/** The part of the choice that is the same for all connections of a server or channel. */
export interface FabricPlan {
  /** The allowed fabrics, in order of preference. */
  readonly names: readonly FabricName[];
  /** True when no fabric was named. Fabrics that this machine does not have are then left out. */
  readonly auto: boolean;
  readonly verbs: VerbsOptions;
  readonly isolated: boolean;
}

/**
 * Returns the checked value of an environment variable, or undefined when the variable is not set. The value
 * must be valid for the option that the variable replaces.
 */
function environment(name: string, rule: OptionRule): unknown {
  const text = process.env[name];
  if (text === undefined || text === '') return undefined;
  let value: unknown = text;
  if (rule.kind === 'integer') value = Number(text);
  else if (rule.kind === 'choices' && text.includes(',')) value = text.split(',');
  return checkedValue(`environment variable ${name}`, rule, value);
}

/**
 * Returns the plan of a server or channel. `given` is the options object of the user. Options that it does
 * not contain may come from the environment. `fixed` overrides options and environment. Throws for an invalid
 * value in the environment.
 */
export function fabricPlan(
  given: FabricOptions | undefined,
  checked: CheckedFabricOptions,
  fixed: readonly FabricName[] | undefined,
): FabricPlan {
  if (fixed !== undefined) return { names: fixed, auto: false, verbs: {}, isolated: false };
  const fabric =
    (given?.fabric === undefined ? environment('RDMA_RPC_FABRIC', fabricRules.fabric) : undefined) ??
    checked.fabric;
  const { verbs } = checked;
  const all: Record<string, unknown> = {
    ...verbs,
    device: verbs.device || environment('RDMA_RPC_DEVICE', verbsRules.device) || undefined,
    port: verbs.port ?? environment('RDMA_RPC_PORT', verbsRules.port),
    gidIndex: verbs.gidIndex ?? environment('RDMA_RPC_GID_INDEX', verbsRules.gidIndex),
  };
  return {
    names: fabric === 'auto' ? fabricNames : ([fabric].flat() as Fabric[]),
    auto: fabric === 'auto',
    verbs: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)),
    isolated: checked.isolation === 'session',
  };
}

/**
 * Returns the fabrics to offer for one connection, and the reasons why the other fabrics are not offered.
 * Throws when the addon is missing.
 */
export function offers({
  names,
  auto,
  verbs,
  isolated,
}: FabricPlan): Pick<LocalSide, 'fabrics' | 'without' | 'verbs' | 'isolated'> {
  const without = names
    .filter((name) => auto && fabricRow(name).hasDevice)
    .map((name) => ({ name, reason: whyNoVerbs(verbs.device) }))
    .filter(({ reason }) => reason !== '');
  const fabrics = names.filter((name) => !without.some((each) => each.name === name));
  return { fabrics, without, verbs, isolated };
}
