/**
 * Handles promises that are given in place of values, for example by a getter, a hook or an option that is an
 * async function by mistake. The code that wanted the value refuses or ignores the promise. Without this
 * function a rejection of the promise would be unhandled and would end the process. It is called where values
 * of the application are inspected, on their thread.
 */
import { isPromise } from 'node:util/types';

const ignore = (): void => undefined;

/** Returns the value. If it is a promise, its rejection is handled and ignored. */
export function disown<T>(value: T): T {
  try {
    if (isPromise(value)) Promise.prototype.then.call(value, undefined, ignore);
  } catch {
    // A promise with a constructor of its own can make `then` throw.
  }
  return value;
}
