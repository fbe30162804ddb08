/**
 * How the promise of a call is rejected, so that the error's stack ends where the application awaits the
 * call, and so that timers still run in an application whose calls all fail at once. Called when calls and
 * streams fail; successful calls never come here.
 */
import { requestFault } from './failure.ts';
import { RpcError } from './rpc-error.ts';

/**
 * Resolves the promise that the caller of a call has. Calls keep no other function: a failed call is resolved
 * with a rejected promise, because each function that a call keeps costs every call a store into old memory.
 */
export type Resolve = (value: unknown) => void;

/** Stack frames beyond the usual ten, which belong to this package and to interceptors. */
const moreFrames = 15;

/** Errors of the application that are returned to it unchanged: their stacks show where they were thrown. */
const foreign = new WeakSet<object>();

export function keepStack(error: unknown): void {
  if (typeof error === 'object' && error !== null) foreign.add(error);
}

function withMoreFrames<T>(make: () => T): T {
  const limit: unknown = Error.stackTraceLimit;
  // If the application wants no stacks, or has made the limit unchangeable, its setting is used.
  const descriptor = Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit');
  if (typeof limit !== 'number' || limit === 0 || descriptor?.writable !== true) return make();
  Error.stackTraceLimit = limit + moreFrames;
  try {
    return make();
  } finally {
    Error.stackTraceLimit = limit;
  }
}

/**
 * V8 adds the functions that await a call (`at async main`) to a stack that is captured while an async
 * function settles the promise that they wait for. The stack is therefore captured here, rather than where
 * the error was made: that happens in an event, which has no caller. The promise of the call is resolved with
 * the promise of this function, which must not end before the two are linked; that takes two microtask turns.
 */
async function callFailed(error: unknown): Promise<never> {
  await undefined;
  await undefined;
  if (error instanceof Error && !foreign.has(error))
    withMoreFrames(() => {
      try {
        Error.captureStackTrace(error);
      } catch {
        // A frozen error keeps its stack.
      }
    });
  throw error;
}

/** Rejects a call because of an event, a timer or a signal. */
export function failCall(resolve: (failed: Promise<never>) => void, error: unknown): void {
  resolve(callFailed(error));
}

// A reference to the original function, since calls must fail even when a test replaces the global one by a
// fake timer.
const soon = setImmediate;
let late: (() => void)[] = [];

function settleLate(): void {
  const due = late;
  late = [];
  for (const settle of due) settle();
}

/**
 * Settles in the next event-loop iteration. Calls that fail before they leave this process must be settled
 * this way: an application that calls again and again would otherwise stay in microtasks, where no timer
 * fires, no socket is read, and the connection that it waits for is never made.
 */
export function inNextTurn(settle: () => void): void {
  if (late.length === 0) soon(settleLate);
  late.push(settle);
}

/**
 * Rejects a call from within the function that makes it, so that its callers are in the stack of the error.
 * `waited` says that the call has been in a queue, so that its callers are not in the stack.
 */
export function refuseCall(resolve: Resolve, makeError: () => Error, waited = false): void {
  const error = withMoreFrames(makeError);
  inNextTurn(() => (waited ? failCall(resolve, error) : resolve(Promise.reject(error))));
}

/** Rejects a call whose request cannot be encoded, or that has another reason not to be sent. */
export function refuseRequest(resolve: Resolve, path: string, cause: unknown, waited: boolean): void {
  refuseCall(resolve, () => (cause instanceof RpcError ? cause : requestFault(path, cause)), waited);
}

/** The same as a promise. */
export function refusedCall(error: unknown): Promise<never> {
  return new Promise((_, reject) => inNextTurn(() => reject(error)));
}

/**
 * Replaces `resolve` of a promise that is already settled, and handles a failure: an unhandled rejection
 * would be an error of the process.
 */
export const unheard = (end: unknown): void => void Promise.resolve(end).catch(() => undefined);
