/**
 * What makes V8 collect now. Node gives a program no function for it; a context of `node:vm` has one when it
 * is made while the flag is set, as test tools make use of, too. Taken when it is first needed (2 ms). Called
 * by native code for messages that were dropped (native/binding/buffers/young_buffers.h) and for streams that
 * were (connect), on any JS thread.
 */
/** Collects the whole heap, or its young objects only: those that were made a short while ago. */
export type Collector = (what: 'all' | 'young') => void;

function find(): Collector | undefined {
  const { Bun } = globalThis as { Bun?: { gc(now: boolean): void } };
  if (Bun !== undefined) return (what) => (what === 'all' ? Bun.gc(true) : undefined);
  try {
    // Not imported: hardly any program needs them, and each would load them.
    const { setFlagsFromString } = process.getBuiltinModule('node:v8');
    const { runInNewContext } = process.getBuiltinModule('node:vm');
    // Only new contexts have the function. A program that looks for a global `gc` finds what it had before.
    setFlagsFromString('--expose-gc');
    const gc: unknown = runInNewContext('gc');
    setFlagsFromString('--no-expose-gc');
    if (typeof gc !== 'function') return undefined;
    return (what) => void gc(what === 'young' ? { type: 'minor' } : undefined);
  } catch {
    return undefined;
  }
}

let known: Collector | undefined | 'not looked for' = 'not looked for';

/** Undefined where nothing can make the engine collect. */
export function collector(): Collector | undefined {
  if (known === 'not looked for') known = find();
  return known;
}

/** For native code. */
export function collectYoung(): void {
  collector()?.('young');
}
