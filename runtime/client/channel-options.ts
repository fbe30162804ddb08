/** The options of a channel, and their checks. */
import { type CheckedFabricOptions, type FabricOptions, fabricRules } from '../control/fabric-options.ts';
import { type CheckedSecurity, type SecurityOptions, securityRules } from '../control/security-level.ts';
import type { ChannelTls, TlsSource } from '../control/tls/tls-options.ts';
import type { HealthCheck } from '../core/health-check.ts';
import type { Interceptor } from '../core/interceptor.ts';
import type { Log } from '../core/log.ts';
import { type OptionRules, ownedBy } from '../core/options.ts';
import * as limits from '../limits.ts';
import type { ServiceConfig } from './config/service-config.ts';
import * as connectionLimits from './connections/limits.ts';
import type { OutlierDetection } from './connections/outliers.ts';
import {
  type ConsistentHash,
  consistentHashRules,
  type LoadReports,
  loadReportRules,
  policyNames,
} from './connections/policies.ts';
import { type Subset, subsetRules } from './connections/subset-id.ts';
import type { Credentials } from './credentials.ts';

export interface ChannelOptions extends FabricOptions {
  /** Limit of calls in flight per address. The server may have a lower limit. Default 256. */
  inflightMax?: number;
  /**
   * Limit of open streams per address. The server may have a lower limit. Further streams wait. Default 64.
   */
  streamsMax?: number;
  /**
   * Limit of waiting calls, in addition to the calls in flight. When it is reached, further calls fail with
   * RESOURCE_EXHAUSTED. Default 4096.
   */
  queueMax?: number;
  /** Largest accepted response, in bytes. Default 64 MiB, at most 4 GiB - 1. */
  messageMaxBytes?: number;
  /** Time limit of one attempt to connect, in ms. Default 5000. */
  connectTimeoutMs?: number;
  /**
   * Longest pause after the first failed attempt, in ms. Each channel shortens it at random, down to 1/1.8.
   * Each further pause is 1.8 times as long. All pauses vary by 20 %. Default 50.
   */
  backoffMs?: number;
  /** Longest pause after a failed attempt, in ms. Default 10 000. */
  backoffMaxMs?: number;
  /**
   * Time without calls in ms. After this time the connection is checked by a ping before the next call uses
   * it. Default 60 000.
   */
  verifyAfterMs?: number;
  /** Conditions under which one of several addresses is not used for a while because of bad answers. */
  outlierDetection?: OutlierDetection;
  /**
   * The way in which several addresses are used. `least-request` connects to all addresses, draws two at
   * random, and takes the one with fewer calls in flight. `round-robin` takes the addresses in turn.
   * `consistent-hash` sends calls with the same value of a metadata key to the same server. All three
   * policies use the weights of the addresses. `weighted-round-robin` takes the addresses in turn, by weights
   * from the servers' load reports. `pick-first` connects to the first address in the list that can be
   * reached. Default `least-request`.
   */
  loadBalancing?: 'round-robin' | 'pick-first' | 'least-request' | 'consistent-hash' | 'weighted-round-robin';
  /** The metadata key of `consistent-hash`, and the bound of the load. */
  consistentHash?: ConsistentHash;
  /** The way in which the reports of servers become weights with `weighted-round-robin`. */
  loadReports?: LoadReports;
  /**
   * Zone of this client. Servers of the same zone are preferred. Calls go to other zones when too few servers
   * of this zone are ready. Default: none, so that zones do not matter.
   */
  zone?: string;
  /** Uses only some of the servers; most other clients use different servers. Default: all. */
  subset?: Subset;
  /**
   * Number of connections to each address, for servers whose worker threads share an address. A call takes
   * the connection with the fewest calls in flight. Default 1.
   */
  connectionsPerAddress?: number;
  /**
   * Makes calls only to servers whose health service reports that they serve: `healthCheck()` of
   * `rdma-rpc/health`. Has no effect with `pick-first`. Default: none.
   */
  healthCheck?: HealthCheck;
  /**
   * Interval in ms at which better fabrics are tried while the connection does not use the most preferred
   * fabric. Default 0, which means never.
   */
  fabricUpgradeMs?: number;
  /** Minimum time in ms between two calls of the resolver. Default 5000. */
  resolveMinMs?: number;
  /**
   * Defaults of calls, policy and retry budget in the form of gRPC's service configuration. The value is an
   * object, or the path of a JSON file that is read again when it changes. Default: the configuration in the
   * addresses of the resolver, if they contain one.
   */
  serviceConfig?: ServiceConfig | string;
  /** Time limit of calls that set no limit. Default: none. */
  timeoutMs?: number;
  /**
   * Uses TLS 1.3 on `host:port` addresses. The options say how to verify the server and which certificate
   * this side has. `{}` trusts the authorities that Node trusts.
   */
  tls?: TlsSource<ChannelTls>;
  /** The required security level of sessions. */
  security?: SecurityOptions;
  /** Credentials, such as tokens, that are sent with each connection or with each call. */
  credentials?: Credentials;
  /** Name of this process for the server. Default: its process id. */
  identity?: string;
  /**
   * Interceptors of the calls of all clients of this channel. They are outside a client's own interceptors,
   * and the first is the outermost. Default: none.
   */
  interceptors?: readonly Interceptor[];
  /**
   * Receives one line per connection, which names the chosen fabric and the reasons against the other
   * fabrics. Default: a process warning is shown when a fabric was skipped.
   */
  log?: Log;
}

export const outlierRules: OptionRules = {
  badAnswersMax: { kind: 'integer', range: connectionLimits.badAnswersInRow },
  ejectionMs: { kind: 'integer', range: connectionLimits.ejectionMs },
  intervalMs: { kind: 'integer', range: connectionLimits.outlierIntervalMs },
  answersMin: { kind: 'integer', range: connectionLimits.outlierAnswers },
};

const credentialsRules: OptionRules = {
  session: { kind: 'function' },
  call: { kind: 'function' },
  unsealed: { kind: 'boolean' },
};

export const channelRules: OptionRules = ownedBy('createChannel', {
  inflightMax: { kind: 'integer', range: limits.inflight },
  streamsMax: { kind: 'integer', range: limits.streams },
  queueMax: { kind: 'integer', range: limits.queuedCalls },
  messageMaxBytes: { kind: 'integer', range: limits.messageBytes },
  connectTimeoutMs: { kind: 'integer', range: limits.connectTimeoutMs },
  backoffMs: { kind: 'integer', range: limits.backoffMs },
  backoffMaxMs: { kind: 'integer', range: limits.backoffMaxMs },
  verifyAfterMs: { kind: 'integer', range: connectionLimits.verifyAfterMs },
  outlierDetection: { kind: 'options', rules: outlierRules },
  loadBalancing: { kind: 'choice', values: policyNames, default: 'least-request' },
  consistentHash: { kind: 'options', rules: consistentHashRules },
  loadReports: { kind: 'options', rules: loadReportRules },
  zone: { kind: 'text', default: '', maxBytes: connectionLimits.zoneBytes },
  subset: { kind: 'options', rules: subsetRules },
  connectionsPerAddress: { kind: 'integer', range: connectionLimits.connectionsPerAddress },
  healthCheck: { kind: 'source' },
  fabricUpgradeMs: { kind: 'integer', range: connectionLimits.fabricUpgradeMs },
  resolveMinMs: { kind: 'integer', range: connectionLimits.resolveMinMs },
  serviceConfig: { kind: 'config' },
  timeoutMs: { kind: 'time' },
  tls: { kind: 'source' },
  security: { kind: 'options', rules: securityRules },
  credentials: { kind: 'options', rules: credentialsRules },
  identity: { kind: 'text', default: `pid ${process.pid}`, maxBytes: limits.controlTextBytes },
  interceptors: { kind: 'functions' },
  log: { kind: 'function' },
  ...fabricRules,
});

/** Checked options with all defaults. */
export type CheckedChannelOptions = Required<
  Omit<
    ChannelOptions,
    | 'log'
    | 'tls'
    | 'security'
    | 'credentials'
    | 'outlierDetection'
    | 'consistentHash'
    | 'loadReports'
    | 'subset'
    | 'serviceConfig'
    | 'healthCheck'
    | keyof FabricOptions
  >
> &
  Pick<ChannelOptions, 'log' | 'serviceConfig' | 'healthCheck'> & {
    readonly outlierDetection: Required<OutlierDetection>;
    readonly consistentHash: Required<ConsistentHash>;
    readonly loadReports: Required<LoadReports>;
    readonly subset: Required<Subset>;
    readonly credentials: Credentials;
    readonly security: CheckedSecurity;
  } & CheckedFabricOptions;
