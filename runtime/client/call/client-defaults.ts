/**
 * The default options of a client's calls. They are checked when the client is created, and merged with the
 * options of each call.
 */
import type { MethodDefinition } from '../../codec/types.ts';
import { Metadata, type MetadataInit } from '../../core/metadata.ts';
import { checkedTimeMs, checkNames } from '../../core/options.ts';
import type { CallOptions, MethodDefaults } from '../../core/types.ts';
import { constantMetadata } from './constant-metadata.ts';
import type { ClientMethodFunction } from './intercepted-call.ts';
import { hedgingPolicy, notIdempotent, retryPolicy } from './repeat.ts';

export type Defaults = Readonly<Record<string, MethodDefaults | undefined>>;

const names: readonly (keyof MethodDefaults)[] = [
  'timeoutMs',
  'waitForReady',
  'interceptors',
  'metadata',
  'onHeader',
  'onTrailer',
  'retry',
  'hedging',
  'idempotent',
];

/**
 * Returns the defaults of a method. Each option in the method's own entry overrides the same option in the
 * entry for all methods (`*`). `others` contains the further options that each call gets.
 */
export function defaultsOf(
  what: string,
  defaults: Defaults,
  name: string,
  method: MethodDefinition,
): Pick<MethodDefaults, 'timeoutMs' | 'waitForReady' | 'idempotent'> & { others: CallOptions | undefined } {
  for (const key of ['*', name]) {
    const given = defaults[key];
    if (given === undefined) continue;
    checkNames(`${what}: defaults of ${key}`, given, names);
    const { timeoutMs, waitForReady, metadata, retry, hedging, idempotent } = given;
    if (timeoutMs !== undefined) checkedTimeMs(`${what}: timeoutMs of ${key}`, timeoutMs);
    if (waitForReady !== undefined && typeof waitForReady !== 'boolean')
      throw new TypeError(`${what}: waitForReady of ${key} must be true or false`);
    if (idempotent !== undefined && typeof idempotent !== 'boolean')
      throw new TypeError(`${what}: idempotent of ${key} must be true or false`);
    if (metadata !== undefined) new Metadata(metadata);
    retryPolicy(`${what}: ${key}`, retry);
    hedgingPolicy(`${what}: ${key}`, hedging);
    if (retry && hedging) throw new TypeError(`${what}: ${key}: give either retry or hedging`);
  }
  const {
    timeoutMs,
    waitForReady,
    idempotent,
    interceptors: _,
    ...others
  } = merged<MethodDefaults>(defaults['*'], defaults[name]);
  const stream = method.requestStream || method.responseStream;
  const twice = idempotent ?? method.options.idempotencyLevel !== undefined;
  checkFits(`${what}: ${name}`, defaults[name], stream, twice, idempotent);
  // A default for all methods applies only to the methods that support it.
  if (stream) delete others.retry;
  if (stream || !twice) delete others.hedging;
  // The method's own entry decides between retry and hedging.
  if (defaults[name]?.retry) delete others.hedging;
  if (defaults[name]?.hedging) delete others.retry;
  // With a `retry` for all methods, a call of a method that is not idempotent is repeated only when it has
  // not run.
  const decided = idempotent ?? (others.retry && !twice ? false : undefined);
  return {
    timeoutMs,
    waitForReady,
    idempotent: decided,
    others: Object.keys(others).length > 0 ? others : undefined,
  };
}

/**
 * Throws for options that the named method does not support. The error is thrown now, because otherwise the
 * calls would silently not be retried.
 */
function checkFits(
  where: string,
  given: MethodDefaults | undefined,
  stream: boolean,
  twice: boolean,
  idempotent: boolean | undefined,
): void {
  for (const option of ['retry', 'hedging'] as const) {
    if (!given?.[option]) continue;
    if (stream) throw new TypeError(`${where}: a stream takes no \`${option}\``);
    // With `idempotent: false`, only calls that have not run may be repeated.
    if (!twice && (option === 'hedging' || idempotent === undefined)) throw notIdempotent(where, option);
  }
}

/** Throws when hedging is a default for all methods and none of the methods supports it. */
export function checkHedgingFits(
  what: string,
  defaults: Defaults,
  methods: Iterable<[string, MethodDefinition]>,
): void {
  if (!defaults['*']?.hedging) return;
  for (const [name, { requestStream, responseStream, options }] of methods) {
    const idempotent = defaults[name]?.idempotent ?? defaults['*'].idempotent;
    const twice = idempotent ?? options.idempotencyLevel !== undefined;
    if (twice && !requestStream && !responseStream) return;
  }
  throw notIdempotent(`${what}: *: it fits none of the methods`, 'hedging');
}

/**
 * Returns `call` with default options. The options are copied now, so that later changes by the application
 * have no effect. With `shared`, all calls without options of their own get the same object, which the
 * application never sees.
 */
export function withDefaults(
  call: ClientMethodFunction,
  given: CallOptions,
  shared: boolean,
): ClientMethodFunction {
  const { metadata } = given;
  const defaults: CallOptions =
    metadata === undefined ? { ...given } : { ...given, metadata: constantMetadata(metadata) };
  return (request, options) => {
    if (options === undefined && shared) return call(request, defaults);
    // Invalid options of JavaScript callers are passed on, because the call itself refuses them when it
    // starts.
    if (options !== undefined && (typeof options !== 'object' || options === null))
      return call(request, options);
    const both = merged(defaults, options);
    // The call's own choice between retry and hedging overrides the default.
    if (options?.retry) delete both.hedging;
    if (options?.hedging) delete both.retry;
    return call(request, both);
  };
}

/**
 * Merges options. Options of `over` override options of `under`. Keys of metadata are replaced one by one.
 */
function merged<O extends CallOptions>(under: O | undefined, over: O | undefined): O {
  const both = { ...under } as Record<string, unknown>;
  for (const [name, value] of Object.entries(over ?? {})) if (value !== undefined) both[name] = value;
  if (under?.metadata !== undefined && over?.metadata !== undefined)
    both.metadata = mergedMetadata(under.metadata, over.metadata);
  return both as O;
}

function mergedMetadata(under: MetadataInit, over: MetadataInit): Metadata {
  const result = new Metadata(under);
  const own = new Metadata(over);
  for (const [key] of own) result.delete(key);
  for (const [key, value] of own) result.append(key, value);
  return result;
}
