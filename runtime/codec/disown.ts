/**
 * Promises in the place of values: a getter, a hook or an option that is an async function by mistake. The
 * value is refused or passed over where it is used; its rejection would be nobody's, and end the process.
 * Called where values of the application are looked at, on its thread.
 */
import { isPromise } from 'node:util/types';

const ignore = (): void => undefined;

/** The value, whose rejection nobody need hear of. */
export function disown<T>(value: T): T {
  try {
    if (isPromise(value)) Promise.prototype.then.call(value, undefined, ignore);
  } catch {
    // One with a constructor of its own.
  }
  return value;
}
