/**
 * Collects garbage in tests. `gc` of V8 is called without an argument, because with an argument it does not
 * collect everything.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

/** Collects all garbage, and lets the finalizers run. */
export async function collectAll(): Promise<void> {
  for (let i = 0; i < 8; ++i) {
    gc();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
