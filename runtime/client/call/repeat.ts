/**
 * Calls with retry or hedging, which the fast path does not handle. This file also checks these options.
 * Channels use this file, and it is also used when a client is created.
 */
import { clockMs } from '../../clock.ts';
import { refusedCall } from '../../core/errors/failing.ts';
import { requestFault, responseFault } from '../../core/errors/failure.ts';
import { Status, type StatusCode } from '../../core/errors/status.ts';
import { disown, heard } from '../../core/foreign.ts';
import { lengthsOf } from '../../core/lengths.ts';
import type { Metadata } from '../../core/metadata.ts';
import { checkedValue, checkNames, type OptionRule } from '../../core/options.ts';
import type { HedgingOptions, RetryOptions } from '../../core/repeat-options.ts';
import type { CallOptions } from '../../core/types.ts';
import { backoffMaxMs, backoffMs } from '../../limits.ts';
import { type HedgingPolicy, hedged, hedgingDefaults } from '../connections/hedging.ts';
import {
  type Repeatable,
  type Repeats,
  type RetryPolicy,
  retried,
  retryDefaults,
} from '../connections/retry.ts';
import { callTimeoutMs } from './call-options.ts';
import type { ClientMethod } from './client-method.ts';

/** The functions of a channel that this file needs. */
export interface Attempts {
  readonly repeats: Repeats;
  attempt(method: ClientMethod, request: unknown, options: CallOptions | undefined): Promise<unknown>;
}

const integer = (min: number, max: number): OptionRule => ({
  kind: 'integer',
  range: { default: undefined, min, max },
});
const retryRules = {
  attemptsMax: integer(2, 5),
  backoffMs: integer(0, backoffMs.max),
  backoffMaxMs: integer(0, backoffMaxMs.max),
};
const hedgingRules = { attemptsMax: integer(2, 5), delayMs: integer(0, backoffMs.max) };

const isCode = (value: unknown): boolean =>
  value !== Status.OK && (Object.values(Status) as unknown[]).includes(value);

function checkedCodes(where: string, given: unknown): StatusCode[] {
  const codes: unknown[] = Array.isArray(given) ? [...given] : [given];
  if (Array.isArray(given) && codes.every(isCode)) return codes as StatusCode[];
  for (const each of codes) disown(each);
  throw new TypeError(`${where}: codes must be a list of Status codes other than OK`);
}

/**
 * Copies the given values that are not undefined. Throws for an invalid value. Each value is read once, so
 * that a getter cannot return another value after the check.
 */
function checkedPolicy(
  where: string,
  given: object,
  rules: Readonly<Record<string, OptionRule>>,
): Record<string, unknown> {
  checkNames(where, given, [...Object.keys(rules), 'codes']);
  const policy: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    policy[name] =
      name === 'codes' ? checkedCodes(where, value) : checkedValue(`${where}: ${name}`, rules[name]!, value);
  }
  return policy;
}

export function retryPolicy(where: string, given: RetryOptions | false | undefined): RetryPolicy | undefined {
  if (given === undefined || given === false) return undefined;
  return { ...retryDefaults, ...checkedPolicy(`${where}: retry`, given, retryRules) };
}

export function hedgingPolicy(
  where: string,
  given: HedgingOptions | false | undefined,
): HedgingPolicy | undefined {
  if (given === undefined || given === false) return undefined;
  const policy: Partial<HedgingPolicy> = checkedPolicy(`${where}: hedging`, given, hedgingRules);
  const { delayMs } = policy;
  if (delayMs === undefined) throw new TypeError(`${where}: hedging needs delayMs`);
  return { ...hedgingDefaults, ...policy, delayMs };
}

/** Returns the error for an `option` on a method that is not declared idempotent. */
export function notIdempotent(where: string, option: 'retry' | 'hedging'): TypeError {
  const remedy =
    'if this is harmless, put `option idempotency_level = IDEMPOTENT;` into the method in its .proto, or `idempotent: true` beside it in createClient';
  const text =
    option === 'hedging'
      ? `hedging may run the handler more than once, but the method is not declared idempotent; ${remedy}`
      : `\`retry\` makes the call again although its handler may have run, but the method is not declared idempotent; ${remedy}; with \`idempotent: false\` only calls whose handler has not run are made again`;
  return new TypeError(`${where}: ${text}`);
}

/**
 * Keeps the header and trailer of an attempt. They are passed to the caller only if the result of this
 * attempt is used.
 */
class Told {
  #header: Metadata | undefined;
  #trailer: Metadata | undefined;
  readonly #options: CallOptions;

  constructor(options: CallOptions) {
    this.#options = options;
  }

  get listeners(): Pick<CallOptions, 'onHeader' | 'onTrailer'> {
    const { onHeader, onTrailer } = this.#options;
    return {
      onHeader: onHeader && ((header) => (this.#header = header)),
      onTrailer: onTrailer && ((trailer) => (this.#trailer = trailer)),
    };
  }

  tell(): void {
    if (this.#header !== undefined) heard('onHeader', this.#options.onHeader?.(this.#header));
    if (this.#trailer !== undefined) heard('onTrailer', this.#options.onTrailer?.(this.#trailer));
  }
}

function anyOf(signals: readonly (AbortSignal | undefined)[]): AbortSignal | undefined {
  const given = signals.filter((signal) => signal !== undefined);
  return given.length > 1 ? AbortSignal.any(given) : given[0];
}

/**
 * Returns the retry or hedging options of a call. It returns undefined when `retry: false` overrides a
 * default. Throws a TypeError or RangeError for options that the method does not support.
 */
function policiesOf(
  method: ClientMethod,
  options: CallOptions,
): { retry: RetryPolicy | undefined; hedging: HedgingPolicy | undefined; timeoutMs: number } {
  const timeoutMs = callTimeoutMs(options, method.timeoutMs);
  const retry = retryPolicy(method.path, options.retry);
  const hedging = hedgingPolicy(method.path, options.hedging);
  if (hedging !== undefined && !method.idempotent) throw notIdempotent(method.path, 'hedging');
  if (retry !== undefined && !method.decided) throw notIdempotent(method.path, 'retry');
  if (retry !== undefined && hedging !== undefined)
    throw new TypeError(`${method.path}: give either retry or hedging`);
  if (hedging !== undefined && options.into !== undefined)
    throw new TypeError(`${method.path}: several attempts cannot share \`into\``);
  return { retry, hedging, timeoutMs };
}

/** Starts a call with retry or hedging. Rejects with a TypeError or RangeError for invalid options. */
export async function repeated(
  channel: Attempts,
  method: ClientMethod,
  request: unknown,
  options: CallOptions,
): Promise<unknown> {
  let policies: ReturnType<typeof policiesOf>;
  try {
    policies = policiesOf(method, options);
  } catch (error) {
    return refusedCall(error);
  }
  const { retry, hedging, timeoutMs } = policies;
  if (retry === undefined && hedging === undefined) return channel.attempt(method, request, options);

  const endMs = timeoutMs < 0 ? Number.POSITIVE_INFINITY : clockMs() + timeoutMs;
  const lengths = lengthsOf(method.requestType, request);
  let told: Told | undefined;
  const call: Repeatable = {
    idempotent: method.idempotent,
    endMs,
    signal: anyOf([options.signal, options.context?.signal]),
    attempt: async (also) => {
      try {
        lengths?.check();
      } catch (cause) {
        return refusedCall(requestFault(method.path, cause));
      }
      const mine = new Told(options);
      const left = timeoutMs < 0 ? {} : { timeoutMs: Math.max(0, endMs - clockMs()) };
      const signal = anyOf([options.signal, also]);
      const attempt = channel.attempt(method, request, { ...options, ...left, ...mine.listeners, signal });
      // The header and trailer of the winning attempt are used. The attempts that lose are cancelled and
      // settle later.
      const settled = (): void => {
        if (also?.aborted !== true) told = mine;
      };
      return attempt.finally(settled);
    },
  };
  const result =
    hedging === undefined ? retried(call, retry!, channel.repeats) : hedged(call, hedging, channel.repeats);
  let response: unknown;
  try {
    response = await result;
  } catch (error) {
    try {
      told?.tell();
    } catch {
      // The error of the callback is ignored, because the caller gets the call's own error, which came first.
    }
    throw error;
  }
  try {
    told?.tell();
  } catch (cause) {
    throw responseFault(method.path, cause);
  }
  return response;
}
