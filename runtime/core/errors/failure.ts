/**
 * The errors that the runtime itself makes for calls. The text for each native Reason says what to do next.
 */

import { type NativeContext, Reason } from '../../native/native.ts';
import { textOf } from '../foreign.ts';
import { type Processed, RpcError } from './rpc-error.ts';
import { Status, type StatusCode } from './status.ts';

const processedNames: readonly Processed[] = ['no', 'maybe', 'yes'];

/** Translates the `processed` word of an event. */
export function processedName(word: number): Processed {
  return processedNames[word] ?? 'maybe';
}

const codes: Readonly<Record<number, StatusCode>> = {
  [Reason.sessionLost]: Status.UNAVAILABLE,
  [Reason.cancelled]: Status.CANCELLED,
  [Reason.deadline]: Status.DEADLINE_EXCEEDED,
  [Reason.noMemory]: Status.RESOURCE_EXHAUSTED,
  [Reason.tooLarge]: Status.RESOURCE_EXHAUSTED,
  [Reason.registration]: Status.RESOURCE_EXHAUSTED,
  [Reason.staging]: Status.RESOURCE_EXHAUSTED,
  [Reason.detached]: Status.INTERNAL,
};

/** The options that limit the memory of this side. The error texts show their values. */
export interface MemoryLimits {
  readonly arenaBytes: number;
  readonly mrCacheBytes: number;
  /** Undefined when the size follows from the size of messages. */
  readonly stagingBytes: number | undefined;
}

const inBrackets = (value: number | undefined): string => (value === undefined ? '' : ` (${value})`);

const texts: Readonly<Record<number, string | ((limits?: MemoryLimits) => string)>> = {
  [Reason.sessionLost]: 'the connection was lost',
  [Reason.cancelled]: 'cancelled by the caller',
  [Reason.deadline]: 'the deadline passed',
  [Reason.noMemory]: (limits) =>
    `the arena has no room for the message: call release() on leases earlier, or raise arenaBytes${inBrackets(limits?.arenaBytes)} in configure()`,
  [Reason.tooLarge]:
    'the message is larger than the receiver accepts: raise messageMaxBytes of the receiver, or send a smaller message',
  [Reason.registration]: (limits) =>
    `the memory of the message could not be registered: raise RLIMIT_MEMLOCK, or mrCacheBytes${inBrackets(limits?.mrCacheBytes)} in configure()`,
  [Reason.staging]: (limits) =>
    `the message is larger than the staging memory through which messages are copied on a device without memory windows: raise stagingBytes${inBrackets(limits?.stagingBytes)} in configure()`,
  [Reason.detached]:
    'an ArrayBuffer of the request was transferred or detached during the call: keep it until the call has ended, or pass a copy to the call',
};

/**
 * Converts the reason of an AbortSignal into the native Reason of the call. The result is `deadline` when the
 * signal fired because a deadline passed, as the signal of a handler's context does, and otherwise
 * `cancelled`.
 */
export function reasonOf(cause: unknown): number {
  return cause instanceof RpcError && cause.code === Status.DEADLINE_EXCEEDED
    ? Reason.deadline
    : Reason.cancelled;
}

/**
 * Returns the error of a call that ended on this side for a native reason. `method` is the path of the call,
 * and `detail` is further information. The text shows `limits` when the reason is a lack of memory.
 */
export function failure(
  reason: number,
  method: string,
  processed: Processed,
  detail = '',
  cause?: unknown,
  limits?: MemoryLimits,
): RpcError {
  const code = codes[reason] ?? Status.INTERNAL;
  const known = texts[reason] ?? `unknown reason ${reason}`;
  const text = typeof known === 'string' ? known : known(limits);
  return new RpcError(code, `${method}: ${text}${detail === '' ? '' : ` (${detail})`}`, { processed, cause });
}

/**
 * Does the same as `failure` for a call in `context`. When the system has refused memory, the error contains
 * the reason that the system gave, and otherwise the limits of the context.
 */
export function memoryFailure(
  context: { readonly native: NativeContext; readonly memoryLimits: MemoryLimits },
  reason: number,
  method: string,
  processed: Processed,
  detail = '',
  cause?: unknown,
): RpcError {
  const wantsMemory = reason === Reason.noMemory || reason === Reason.registration;
  const refusal = wantsMemory ? context.native.refusal() : '';
  if (refusal === '') return failure(reason, method, processed, detail, cause, context.memoryLimits);
  const text = `${method}: no memory for the message: ${refusal}`;
  return new RpcError(Status.RESOURCE_EXHAUSTED, text, { processed, cause });
}

/** Returns a name for a method of which the server knows only the id on the wire. */
export const unnamed = (id: number): string => `method id ${id >>> 0}`;

/** Returns the text with which the server answers a call of an unknown method. */
export const unimplemented = (name: string): string => `${name} is not implemented by this server`;

/** The text for a call whose `into` memory the server may still write to. */
export const leaseLost =
  'the server may still write to `into`, so the lease is released; get another lease with allocBuffer()';

/**
 * Returns the error of a call whose response is too large for `into`, and which does not allow other memory.
 */
export function beyondInto(method: string, needed: number, capacity: number): RpcError {
  const text =
    `${method}: the response needs ${needed} bytes, but \`into\` has only ${capacity}; ` +
    `pass a lease of allocBuffer(${needed}), or set intoOverflow: 'lease' to get a larger lease when needed`;
  return new RpcError(Status.RESOURCE_EXHAUSTED, text, { processed: 'yes' });
}

/** Returns the error of a call whose request occupies the arena memory that the response needs. */
export function beyondRequest(method: string, needed: number, arenaBytes: number): RpcError {
  const text =
    `${method}: no memory for the response of ${needed} bytes: ` +
    `the request of this call holds most of the arena until the response arrives; raise arenaBytes (${arenaBytes}) in configure(), or send a smaller request`;
  return new RpcError(Status.RESOURCE_EXHAUSTED, text, { processed: 'yes' });
}

export function intoLent(method: string): TypeError {
  return new TypeError(
    `${method}: into: another call already uses this lease for its response; pass a different lease to each call`,
  );
}

/** A message beyond a limit of the service configuration. */
export class MessageLimit extends RpcError {
  readonly #own = true;

  constructor(method: string, bytes: number, name: string, limit: number, processed: Processed) {
    const text = `${method}: a message of ${bytes} bytes, but ${name} of the service configuration is ${limit}; raise it there, or send a smaller message`;
    super(Status.RESOURCE_EXHAUSTED, text, { processed });
  }

  /** A callback may throw any value, and `instanceof` would run the traps of a proxy. */
  static is(error: unknown): error is MessageLimit {
    return typeof error === 'object' && error !== null && #own in error;
  }
}

/** Returns the error for a request that cannot be encoded. */
export function requestFault(method: string, cause: unknown, processed: Processed = 'no'): RpcError {
  if (MessageLimit.is(cause)) return cause;
  const text = `${method}: the request cannot be sent: ${textOf(cause)}`;
  return new RpcError(Status.INTERNAL, text, { processed, cause });
}

/**
 * Returns the error of a call whose response cannot be decoded, has a part that is not allowed, or made the
 * caller's callback throw.
 */
export function responseFault(method: string, cause: unknown): RpcError {
  if (MessageLimit.is(cause)) return cause;
  const text = `${method}: the response cannot be used: ${textOf(cause)}`;
  return new RpcError(Status.INTERNAL, text, { processed: 'yes', cause });
}

export function tooLarge(
  method: string,
  bytes: number,
  limit: number,
  side: 'server' | 'client',
  processed: Processed = 'no',
): RpcError {
  const text = `${method}: a message of ${bytes} bytes, but the ${side} accepts ${limit}; raise messageMaxBytes of the ${side}`;
  return new RpcError(Status.RESOURCE_EXHAUSTED, text, { processed });
}

/**
 * Returns the error of a call that finds the queue full. `why` is the reason for which the calls in the queue
 * wait, if it is known.
 */
export function queueFull(method: string, queueMax: number, why = ''): RpcError {
  const text = `${method}: the queue is full: ${queueMax} calls wait already${why === '' ? '' : ` (${why})`}; make fewer calls at once, or raise queueMax of the channel`;
  return new RpcError(Status.RESOURCE_EXHAUSTED, text, { processed: 'no' });
}

export function unavailable(text: string, processed: Processed = 'no', cause?: unknown): RpcError {
  return new RpcError(Status.UNAVAILABLE, text, { processed, cause });
}
