/**
 * Rejects the promise of a failed call. The stack of the error then ends in the function that awaits the
 * call. Timers still run in an application whose calls all fail at once. This file is used when calls and
 * streams fail; successful calls do not use this file.
 */
import { requestFault } from './failure.ts';
import { RpcError } from './rpc-error.ts';

/**
 * Resolves the promise that the caller of a call has. A failed call is resolved with a rejected promise. A
 * call therefore does not have to keep a `reject` function too: each function that a call keeps costs every
 * call a store into old memory.
 */
export type Resolve = (value: unknown) => void;

/**
 * Number of stack frames that are captured beyond the usual ten. These frames belong to this package and to
 * interceptors.
 */
const moreFrames = 15;

/**
 * Errors that the application has thrown and gets back unchanged. Their stacks show where they were thrown.
 */
const foreign = new WeakSet<object>();

export function keepStack(error: unknown): void {
  if (typeof error === 'object' && error !== null) foreign.add(error);
}

function withMoreFrames<T>(make: () => T): T {
  const limit: unknown = Error.stackTraceLimit;
  // The application's own setting is used if it has switched stacks off or made the limit unchangeable.
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
 * Captures the stack of the error here. V8 adds the functions that await a call (`at async main`) only to a
 * stack that is captured while an async function settles the promise that they wait for. The place where the
 * error was made is an event, which has no caller. The promise of the call is resolved with the promise of
 * this function. This function must end only after V8 has linked the two promises, which takes two
 * microtasks.
 */
async function callFailed(error: unknown): Promise<never> {
  await undefined;
  await undefined;
  if (error instanceof Error && !foreign.has(error))
    withMoreFrames(() => {
      try {
        Error.captureStackTrace(error);
      } catch {
        // The error is frozen, so it keeps its stack.
      }
    });
  throw error;
}

/** Rejects a call because of an event, a timer or a signal. */
export function failCall(resolve: (failed: Promise<never>) => void, error: unknown): void {
  resolve(callFailed(error));
}

// This is the original `setImmediate`, because calls must also fail when a test has replaced the global
// function by a fake timer.
const soon = setImmediate;
let late: (() => void)[] = [];

function settleLate(): void {
  const due = late;
  late = [];
  for (const settle of due) settle();
}

/**
 * Calls `settle` in the next event-loop iteration. Calls that fail before they leave this process must be
 * settled in this way. Otherwise an application that repeats such a call in a loop would run only microtasks.
 * No timer would fire, no socket would be read, and the connection for which the application waits would
 * never be made.
 */
export function inNextTurn(settle: () => void): void {
  if (late.length === 0) soon(settleLate);
  late.push(settle);
}

/**
 * Rejects a call from within the function that makes the call, so that the error's stack contains the callers
 * of that function. `waited` is true when the call has been in a queue. The current stack then does not
 * contain the caller.
 */
export function refuseCall(resolve: Resolve, makeError: () => Error, waited = false): void {
  const error = withMoreFrames(makeError);
  inNextTurn(() => (waited ? failCall(resolve, error) : resolve(Promise.reject(error))));
}

/** Rejects a call whose request cannot be encoded, or cannot be sent for another reason. */
export function refuseRequest(resolve: Resolve, path: string, cause: unknown, waited: boolean): void {
  refuseCall(resolve, () => (cause instanceof RpcError ? cause : requestFault(path, cause)), waited);
}

/** Returns a promise that is rejected with `error` in the next event-loop iteration. */
export function refusedCall(error: unknown): Promise<never> {
  return new Promise((_, reject) => inNextTurn(() => reject(error)));
}

/**
 * Stands in for `resolve` when the promise of the call is already settled. This function handles the
 * rejection, because an unhandled rejection would end the process.
 */
export const unheard = (end: unknown): void => void Promise.resolve(end).catch(() => undefined);
