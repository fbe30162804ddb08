/** Options that a client has for its calls: checked when it is made, and put under those of each call. */
import { Metadata, type MetadataInit } from '../call/metadata.ts';
import type { MethodDefinition } from '../codec/types.ts';
import type { ClientMethodFunction } from './intercepted-call.ts';
import { checkedTimeMs, checkNames } from './options.ts';
import { hedgingPolicy, retryPolicy } from './repeat.ts';
import type { CallOptions, MethodDefaults } from './types.ts';

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
];

/** What holds for a method: its own entry goes before that of all, option by option. `others`: those that each call is given, if there are any. */
export function defaultsOf(
  what: string,
  defaults: Defaults,
  name: string,
  method: MethodDefinition,
): Pick<MethodDefaults, 'timeoutMs' | 'waitForReady'> & { others: CallOptions | undefined } {
  for (const key of ['*', name]) {
    const given = defaults[key];
    if (given === undefined) continue;
    checkNames(`${what}: defaults of ${key}`, given, names);
    const { timeoutMs, waitForReady, metadata, retry, hedging } = given;
    if (timeoutMs !== undefined) checkedTimeMs(`${what}: timeoutMs of ${key}`, timeoutMs);
    if (waitForReady !== undefined && typeof waitForReady !== 'boolean')
      throw new TypeError(`${what}: waitForReady of ${key} is true or false`);
    if (metadata !== undefined) new Metadata(metadata);
    retryPolicy(`${what}: ${key}`, retry);
    hedgingPolicy(`${what}: ${key}`, hedging);
  }
  const { timeoutMs, waitForReady, interceptors: _, ...others } = merged(defaults['*'], defaults[name]);
  // Those of all methods are meant for those that they fit.
  const stream = method.requestStream || method.responseStream;
  if (stream) delete others.retry;
  if (stream || method.options.idempotencyLevel === undefined) delete others.hedging;
  return { timeoutMs, waitForReady, others: Object.keys(others).length > 0 ? others : undefined };
}

/** The function with options that each call gets unless it has its own. */
export function withDefaults(call: ClientMethodFunction, defaults: CallOptions): ClientMethodFunction {
  return (request, options) => {
    const both = merged(defaults, options);
    // A call chooses between the two ways.
    if (options?.retry) delete both.hedging;
    if (options?.hedging) delete both.retry;
    return call(request, both);
  };
}

/** The second before the first; keys of metadata are replaced one by one. */
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
