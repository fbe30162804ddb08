/** What a channel can be told when it is made, and how it is checked. */
import { type CheckedFabricOptions, type FabricOptions, fabricRules } from '../control/fabric-options.ts';
import { type CheckedSecurity, type SecurityOptions, securityRules } from '../control/security-level.ts';
import type { ChannelTls, TlsSource } from '../control/tls/tls-options.ts';
import type { Interceptor } from '../core/interceptor.ts';
import type { Log } from '../core/log.ts';
import { type OptionRules, ownedBy } from '../core/options.ts';
import * as limits from '../limits.ts';
import * as connectionLimits from './connections/limits.ts';
import type { OutlierDetection } from './connections/outliers.ts';
import type { Credentials } from './credentials.ts';

export interface ChannelOptions extends FabricOptions {
  /** Calls in flight at once, per address; the server may allow fewer. Default 256. */
  inflightMax?: number;
  /** Streams open at once, per address; the server may allow fewer. Default 64; more wait. */
  streamsMax?: number;
  /** Calls that wait beyond those in flight. Default 4096; one more fails with RESOURCE_EXHAUSTED. */
  queueMax?: number;
  /** Largest response accepted, bytes. Default 64 MiB, at most 4 GiB - 1. */
  messageMaxBytes?: number;
  /** One attempt to connect. Default 5000. */
  connectTimeoutMs?: number;
  /**
   * Pause after the first failed attempt; each further one is 1.6 times as long. All vary by 20 %. Default
   * 50.
   */
  backoffMs?: number;
  /** Longest such pause. Default 10 000. */
  backoffMaxMs?: number;
  /**
   * Without calls for so long, the connection is tried with a ping before the next call uses it. Default 60
   * 000.
   */
  verifyAfterMs?: number;
  /** Which of several addresses are left out for a while because of their answers. */
  outlierDetection?: OutlierDetection;
  /**
   * Of several addresses: `round-robin` connects to all and takes turns, `pick-first` to the first that can
   * be reached, in their order. Default round-robin.
   */
  loadBalancing?: 'round-robin' | 'pick-first';
  /**
   * A connection over a fabric that is not the first of those allowed: how often the better ones are tried.
   * Default 0: never.
   */
  fabricUpgradeMs?: number;
  /** Least time between two questions to the resolver. Default 5000. */
  resolveMinMs?: number;
  /** Time limit of calls that have none of their own. Default: none. */
  timeoutMs?: number;
  /**
   * TLS 1.3 on `host:port` addresses: whom the server must prove to be, and what this side proves to be.
   * `{}`: with the authorities that Node trusts.
   */
  tls?: TlsSource<ChannelTls>;
  /** What sessions must promise. */
  security?: SecurityOptions;
  /** Tokens and the like: what is shown to the server with each connection, or with each call. */
  credentials?: Credentials;
  /** What the server is told about this process. Default: its process id. */
  identity?: string;
  /**
   * Around the calls of all clients of this channel, outside of those that a client has; the first is
   * outermost. Default: none.
   */
  interceptors?: readonly Interceptor[];
  /**
   * Gets one line per connection: the fabric chosen, and why no other. Default: a process warning, only when
   * one was skipped.
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
  loadBalancing: { kind: 'choice', values: ['round-robin', 'pick-first'], default: 'round-robin' },
  fabricUpgradeMs: { kind: 'integer', range: connectionLimits.fabricUpgradeMs },
  resolveMinMs: { kind: 'integer', range: connectionLimits.resolveMinMs },
  timeoutMs: { kind: 'time' },
  tls: { kind: 'source' },
  security: { kind: 'options', rules: securityRules },
  credentials: { kind: 'options', rules: credentialsRules },
  identity: { kind: 'text', default: `pid ${process.pid}`, maxBytes: limits.controlTextBytes },
  interceptors: { kind: 'functions' },
  log: { kind: 'function' },
  ...fabricRules,
});

/** With every default. */
export type CheckedChannelOptions = Required<
  Omit<ChannelOptions, 'log' | 'tls' | 'security' | 'credentials' | 'outlierDetection' | keyof FabricOptions>
> &
  Pick<ChannelOptions, 'log'> & {
    readonly outlierDetection: Required<OutlierDetection>;
    readonly credentials: Credentials;
    readonly security: CheckedSecurity;
  } & CheckedFabricOptions;
