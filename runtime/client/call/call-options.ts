/**
 * Converts the options of one call into its CallExtras. A call without such options has no CallExtras. A
 * channel uses this file.
 */
import type { ContextValues } from '../../core/context-values.ts';
import { failure, reasonOf } from '../../core/errors/failure.ts';
import type { HandlerContext } from '../../core/handler-context.ts';
import type { RpcRequest } from '../../core/interceptor.ts';
import { BlockLease, type Lease } from '../../core/lease.ts';
import type { Metadata } from '../../core/metadata.ts';
import { meantInstead } from '../../core/nearest.ts';
import { checkedTimeMs } from '../../core/options.ts';
import type { HedgingOptions, RetryOptions } from '../../core/repeat-options.ts';
import type { CallOptions } from '../../core/types.ts';
import { CallExtras } from '../session/call-extras.ts';
import { metadataBytes } from './constant-metadata.ts';

const names: readonly (keyof CallOptions)[] = [
  'timeoutMs',
  'signal',
  'metadata',
  'onHeader',
  'onTrailer',
  'context',
  'waitForReady',
  'values',
  'retry',
  'hedging',
  'into',
  'intoOverflow',
];

/**
 * Checks the names of options, because a misspelt limit would have no effect. Every call with options runs
 * this code, and a switch is several times faster than a lookup in a Set.
 */
function checkNames(options: CallOptions): void {
  for (const name in options) {
    switch (name) {
      case 'timeoutMs':
      case 'signal':
      case 'metadata':
      case 'onHeader':
      case 'onTrailer':
      case 'context':
      case 'waitForReady':
      case 'values':
      case 'retry':
      case 'hedging':
      case 'into':
      case 'intoOverflow':
        break;
      default:
        throw new TypeError(`options of a call: there is no option ${name}${meantInstead(name, names)}`);
    }
  }
}

/** The parts of a request that interceptors may have changed. */
type Changed = Pick<RpcRequest, 'metadata' | 'signal' | 'context'>;

/**
 * The options of a call inside interceptors. This package builds these options, so their names need no check.
 * The callbacks belong to this package, so they do not need the async context of the caller.
 */
export class InnerOptions implements CallOptions {
  readonly timeoutMs: number | undefined;
  readonly signal: AbortSignal | undefined;
  readonly metadata: Metadata;
  readonly onHeader: (header: Metadata) => void;
  readonly onTrailer: (trailer: Metadata) => void;
  readonly context: HandlerContext | undefined;
  readonly waitForReady: boolean | undefined;
  readonly values: ContextValues | undefined;
  readonly retry: RetryOptions | false | undefined;
  readonly hedging: HedgingOptions | false | undefined;
  readonly into: Lease | undefined;
  readonly intoOverflow: 'error' | 'lease' | undefined;

  /**
   * `given` contains the options of the request. `known` contains the caller's options, whose names have been
   * checked.
   */
  constructor(
    given: CallOptions | undefined,
    known: CallOptions | undefined,
    { metadata, signal, context }: Changed,
    timeoutMs: number | undefined,
    onHeader: (header: Metadata) => void,
    onTrailer: (trailer: Metadata) => void,
  ) {
    if (given !== known && given !== undefined) checkNames(given);
    this.timeoutMs = timeoutMs;
    this.signal = signal;
    this.metadata = metadata;
    this.onHeader = onHeader;
    this.onTrailer = onTrailer;
    this.context = context;
    this.waitForReady = given?.waitForReady;
    this.values = given?.values;
    this.retry = given?.retry;
    this.hedging = given?.hedging;
    this.into = given?.into;
    this.intoOverflow = given?.intoOverflow;
  }
}

/**
 * Returns whether a value is an AbortSignal of any library. An invalid signal would otherwise be noticed only
 * when the call is in flight.
 */
function isSignal(signal: AbortSignal | undefined): boolean {
  return (
    signal === undefined ||
    (typeof signal === 'object' &&
      typeof signal?.aborted === 'boolean' &&
      typeof signal.addEventListener === 'function' &&
      typeof signal.removeEventListener === 'function')
  );
}

function isFunction(value: unknown): boolean {
  return value === undefined || typeof value === 'function';
}

/** Throws a TypeError for values of a wrong type, because JavaScript callers may pass any value. */
function checkKinds(options: CallOptions): void {
  if (typeof options !== 'object' || options === null)
    throw new TypeError('the options of a call must be an object');
  if (!(options instanceof InnerOptions)) checkNames(options);
  const { signal, onHeader, onTrailer, context } = options;
  if (!isSignal(signal))
    throw new TypeError(
      'options of a call: signal is not an AbortSignal; give the signal of an AbortController, controller.signal',
    );
  if (!isFunction(onHeader)) throw new TypeError('options of a call: onHeader is not a function');
  if (!isFunction(onTrailer)) throw new TypeError('options of a call: onTrailer is not a function');
  if (context !== undefined && typeof context?.timeoutMs !== 'function')
    throw new TypeError('options of a call: context is not the context of a handler');
}

/**
 * Returns the call's time limit in milliseconds, or -1 for no limit. The limit is the one in the options, or
 * else `defaultMs`. It is never longer than the time that the call's context has left. Every call with
 * options begins here, so this function also checks the names and types of the options. Throws a RangeError
 * or TypeError.
 */
export function callTimeoutMs(options: CallOptions, defaultMs: number): number {
  checkKinds(options);
  const ownMs = options.timeoutMs === undefined ? defaultMs : checkedTimeMs('timeoutMs', options.timeoutMs);
  const leftMs = options.context?.timeoutMs();
  if (leftMs === undefined) return ownMs;
  return ownMs < 0 ? leftMs : Math.min(ownMs, leftMs);
}

/**
 * Returns the extras of a call, or undefined when the call needs none. Throws the error with which to reject
 * the call: CANCELLED for an aborted signal, or a TypeError or RangeError for an invalid value.
 */
export function callExtras(path: string, options: CallOptions): CallExtras | undefined {
  const { signal, metadata, into, intoOverflow, onHeader, onTrailer, context, waitForReady } = options;
  if (
    signal === undefined &&
    metadata === undefined &&
    into === undefined &&
    intoOverflow === undefined &&
    onHeader === undefined &&
    onTrailer === undefined &&
    context === undefined &&
    waitForReady === undefined
  ) {
    return undefined;
  }
  const parent = context?.signal;
  refuseAborted(path, signal);
  refuseAborted(path, parent);
  if (into !== undefined && !(into instanceof BlockLease && !into.released)) {
    throw new TypeError(`${path}: into: give a lease of allocBuffer() that has not been released`);
  }
  if (intoOverflow !== undefined && intoOverflow !== 'error' && intoOverflow !== 'lease') {
    throw new TypeError(`${path}: intoOverflow must be 'error' or 'lease'`);
  }
  if (waitForReady !== undefined && typeof waitForReady !== 'boolean') {
    throw new TypeError(`${path}: waitForReady must be true or false`);
  }
  const bytes = metadata === undefined ? undefined : metadataBytes(metadata);
  const wishes = { signal, parent, into, intoOverflow, onHeader, onTrailer, waitForReady };
  return new CallExtras(wishes, bytes, options instanceof InnerOptions);
}

function refuseAborted(path: string, signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw failure(reasonOf(signal.reason), path, 'no', '', signal.reason);
}
