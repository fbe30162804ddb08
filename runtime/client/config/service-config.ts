/**
 * Service configuration: settings that the owner of a service recommends to all of its clients, in gRPC's
 * JSON form (grpc.service_config.ServiceConfig). This file has the types for applications, and converts JSON
 * into checked settings. Fields that are not declared here are ignored, as in gRPC.
 */
import type { HedgingOptions, RetryOptions } from '../../core/repeat-options.ts';
import { messageBytes } from '../../limits.ts';
import { Fields } from './config-values.ts';
import { type BalancingConfigs, balancingOf } from './load-balancing-config.ts';

/** A service configuration as JSON. Durations are texts such as `'1.5s'`. */
export interface ServiceConfig {
  /** Defaults of calls. When several entries match a call, only the most specific entry is used. */
  readonly methodConfig?: readonly MethodConfig[];
  /** Policies with their settings, one policy per object. The first known policy is used. */
  readonly loadBalancingConfig?: readonly Readonly<Record<string, object>>[];
  /** The service whose health decides whether a server gets calls, for channels with `healthCheck()`. */
  readonly healthCheckConfig?: { readonly serviceName?: string };
  /** The retry budget of the channel: its size, and what each success adds. */
  readonly retryThrottling?: { readonly maxTokens: number; readonly tokenRatio: number };
}

/** Defaults of the calls of some methods. */
export interface MethodConfig {
  /**
   * Full name of a service and name of a method. An entry without a method is for all methods of the service.
   * An entry without a service and a method is for all methods.
   */
  readonly name: readonly { readonly service?: string; readonly method?: string }[];
  /** Time limit of a call. A shorter limit of the application is used instead. */
  readonly timeout?: string;
  readonly waitForReady?: boolean;
  readonly maxRequestMessageBytes?: number;
  readonly maxResponseMessageBytes?: number;
  readonly retryPolicy?: {
    readonly maxAttempts: number;
    readonly initialBackoff: string;
    readonly maxBackoff: string;
    /** This field is checked but has no effect: pauses always grow by 1.6. */
    readonly backoffMultiplier?: number;
    readonly retryableStatusCodes: readonly (string | number)[];
  };
  readonly hedgingPolicy?: {
    readonly maxAttempts: number;
    readonly hedgingDelay?: string;
    readonly nonFatalStatusCodes?: readonly (string | number)[];
  };
}

/** Checked defaults of a method's calls. */
export interface MethodSettings {
  readonly timeoutMs?: number;
  readonly waitForReady?: boolean;
  readonly requestMaxBytes?: number;
  readonly responseMaxBytes?: number;
  readonly retry?: RetryOptions;
  readonly hedging?: HedgingOptions;
}

/** A checked configuration. */
export interface CheckedServiceConfig extends BalancingConfigs {
  /** The settings by `service/method`, `service/` or `/`. */
  readonly methods: ReadonlyMap<string, MethodSettings>;
  /** The name of a service; undefined when the configuration does not mention health. */
  readonly health: string | undefined;
  readonly throttling: { readonly tokens: number; readonly perSuccess: number } | undefined;
  /** A line for each field of gRPC's configuration that has no effect here. */
  readonly reports: readonly string[];
}

/** Larger numbers of attempts are reduced to this number, as in gRPC. */
const attemptsMax = 5;
/** Longest pause of the options `retry` and `hedging`. */
const pauseMaxMs = 600_000;

function attempts(policy: Fields): number {
  const given = policy.integer('maxAttempts', 2, 1_000_000);
  if (given === undefined) throw policy.fault('maxAttempts', 'given');
  return Math.min(given, attemptsMax);
}

/** Rounds a pause to whole milliseconds, because our options take whole numbers. */
function pauseMs(policy: Fields, name: string): number {
  const ms = policy.durationMs(name);
  if (ms === undefined) throw policy.fault(name, 'given');
  return Math.min(pauseMaxMs, Math.ceil(ms));
}

function retryOf(policy: Fields): RetryOptions {
  policy.number('backoffMultiplier', 0, 1_000_000);
  const codes = policy.codes('retryableStatusCodes');
  if (codes.length === 0) throw policy.fault('retryableStatusCodes', 'a list of status codes');
  return {
    attemptsMax: attempts(policy),
    backoffMs: pauseMs(policy, 'initialBackoff'),
    backoffMaxMs: pauseMs(policy, 'maxBackoff'),
    codes,
  };
}

function hedgingOf(policy: Fields): HedgingOptions {
  const codes = policy.codes('nonFatalStatusCodes');
  return {
    attemptsMax: attempts(policy),
    delayMs: policy.has('hedgingDelay') ? pauseMs(policy, 'hedgingDelay') : 0,
    codes,
  };
}

function methodOf(given: Fields): MethodSettings {
  const retry = given.object('retryPolicy');
  const hedging = given.object('hedgingPolicy');
  if (retry !== undefined && hedging !== undefined)
    throw given.fault('hedgingPolicy', 'possible beside retryPolicy');
  const settings = {
    timeoutMs: given.durationMs('timeout'),
    waitForReady: given.boolean('waitForReady'),
    requestMaxBytes: given.integer('maxRequestMessageBytes', 0, messageBytes.max),
    responseMaxBytes: given.integer('maxResponseMessageBytes', 0, messageBytes.max),
    retry: retry && retryOf(retry),
    hedging: hedging && hedgingOf(hedging),
  };
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
}

/** Throws for a name that has appeared before, or a method without a service. */
function keysOf(given: Fields, known: ReadonlyMap<string, unknown>): string[] {
  return given.objects('name').map((name) => {
    const service = name.text('service');
    const method = name.text('method');
    if (service === '' && method !== '') throw name.fault('service', `given beside method '${method}'`);
    const key = `${service}/${method}`;
    if (known.has(key)) throw name.fault('service', `unique: '${key}' has an entry already`);
    return key;
  });
}

/** Returns the checked configuration. Throws an error that names the wrong field. */
export function checkedServiceConfig(given: unknown): CheckedServiceConfig {
  const config = new Fields('serviceConfig', given);
  const methods = new Map<string, MethodSettings>();
  for (const entry of config.objects('methodConfig')) {
    const settings = methodOf(entry);
    for (const key of keysOf(entry, methods)) methods.set(key, settings);
  }
  const throttling = config.object('retryThrottling');
  const health = config.object('healthCheckConfig');
  const reports: string[] = [];
  return {
    methods,
    ...balancingOf(config, (line) => reports.push(line)),
    health: health?.has('serviceName') ? health.text('serviceName') : undefined,
    reports,
    throttling: throttling && {
      tokens: throttling.number('maxTokens', 1, 1000) ?? 0,
      perSuccess: throttling.number('tokenRatio', 0.001, 1000) ?? 0,
    },
  };
}

/** Returns the defaults of a method, by its full name `pkg.Service/Method`. */
export function settingsOf({ methods }: CheckedServiceConfig, path: string): MethodSettings | undefined {
  return methods.get(path) ?? methods.get(`${path.slice(0, path.indexOf('/'))}/`) ?? methods.get('/');
}
