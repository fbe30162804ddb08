/**
 * How the promise of a call is rejected: so that the error's stack ends where the application awaits the
 * call, and so that an application whose calls all fail at once still gets its timers. Called for calls and
 * streams that fail, by whatever finds out; calls that succeed never come here.
 */
import { requestFault } from './failure.ts';
import { RpcError } from './rpc-error.ts';

/**
 * Of the promise that the caller of a call has. Calls keep no other function: a call that fails is resolved
 * with a promise that is rejected, and each function that a call keeps costs all calls a store into old
 * memory.
 */
export type Resolve = (value: unknown) => void;

/** Frames beyond the usual ten, which belong to this package and to interceptors. */
const moreFrames = 15;

/** Errors of the application that come back to it as they were: their stacks say where they were thrown. */
const foreign = new WeakSet<object>();

export function keepStack(error: unknown): void {
  if (typeof error === 'object' && error !== null) foreign.add(error);
}

function withMoreFrames<T>(make: () => T): T {
  const limit: unknown = Error.stackTraceLimit;
  // Whoever wants none, or has made it unchangeable, gets what there is.
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
 * V8 adds the functions that await a call (`at async main`) to a stack that is taken while a promise which
 * they wait for is being settled by an async function. So it is taken here, and not where the error was made:
 * that is in an event, which nobody has called. The promise of the call is resolved with that of this
 * function, which must not end before the call's hangs on it: that takes a second turn of the microtasks.
 */
async function callFailed(error: unknown): Promise<never> {
  await undefined;
  await undefined;
  if (error instanceof Error && !foreign.has(error))
    withMoreFrames(() => {
      try {
        Error.captureStackTrace(error);
      } catch {
        // Frozen: it keeps the stack that it has.
      }
    });
  throw error;
}

/** Rejects a call for something that has happened: an event, a timer, a signal. */
export function failCall(resolve: (failed: Promise<never>) => void, error: unknown): void {
  resolve(callFailed(error));
}

// That of this moment: tests put clocks of their own in place of the global one, and calls must fail all the
// same.
const soon = setImmediate;
let late: (() => void)[] = [];

function settleLate(): void {
  const due = late;
  late = [];
  for (const settle of due) settle();
}

/**
 * Settles in the next turn of the event loop. What fails before it has left this process must come that way:
 * an application that calls again and again would otherwise live in microtasks, where no timer fires, no
 * socket is read, and the connection that it waits for is never made.
 */
export function inNextTurn(settle: () => void): void {
  if (late.length === 0) soon(settleLate);
  late.push(settle);
}

/**
 * Rejects a call from within the function that makes it, whose callers are in the stack of the error.
 * `waited`: the call has been in a queue, so its callers are not.
 */
export function refuseCall(resolve: Resolve, makeError: () => Error, waited = false): void {
  const error = withMoreFrames(makeError);
  inNextTurn(() => (waited ? failCall(resolve, error) : resolve(Promise.reject(error))));
}

/** A call whose request cannot be encoded, or that has a reason of its own not to be made. */
export function refuseRequest(resolve: Resolve, path: string, cause: unknown, waited: boolean): void {
  refuseCall(resolve, () => (cause instanceof RpcError ? cause : requestFault(path, cause)), waited);
}

/** The same as a promise. */
export function refusedCall(error: unknown): Promise<never> {
  return new Promise((_, reject) => inNextTurn(() => reject(error)));
}

/**
 * In place of `resolve` of a promise that is settled: hears how its call ends all the same, since a failure
 * that nobody hears of is an error of the process.
 */
export const unheard = (end: unknown): void => void Promise.resolve(end).catch(() => undefined);
