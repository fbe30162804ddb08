/**
 * Makes V8 collect garbage now. Node offers programs no function for that, but a context of `node:vm` has one
 * if it is created while the flag is set; test tools use this, too. The function is obtained when it is first
 * needed (2 ms). Called by native code when leased messages have been dropped
 * (native/binding/buffers/young_buffers.h), and for dropped streams (connect), on any JS thread.
 */
/** Collects the whole heap, or only young objects, which were created a short while ago. */
export type Collector = (what: 'all' | 'young') => void;

function find(): Collector | undefined {
  const { Bun } = globalThis as { Bun?: { gc(now: boolean): void } };
  if (Bun !== undefined) return (what) => (what === 'all' ? Bun.gc(true) : undefined);
  try {
    // Not imported, so that programs that never need these modules do not load them.
    const { setFlagsFromString } = process.getBuiltinModule('node:v8');
    const { runInNewContext } = process.getBuiltinModule('node:vm');
    // Only the new context gets the function: the program's own global scope gets no `gc`.
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

/** Returns the collector, or undefined when this engine has none. */
export function collector(): Collector | undefined {
  if (known === 'not looked for') known = find();
  return known;
}

/** For native code. */
export function collectYoung(): void {
  collector()?.('young');
}
