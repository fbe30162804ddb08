/**
 * Makes V8 collect garbage now. Node offers programs no function for that. However, a context of `node:vm`
 * has such a function if it is created while a certain flag is set. Test tools use the same method. The
 * function is obtained when it is first needed, which takes 2 ms. Native code calls it when leased messages
 * have been dropped (native/binding/buffers/young_buffers.h). It is also called for dropped streams
 * (connect), on any JS thread.
 */
/** Collects the whole heap, or only young objects, which were created a short while ago. */
export type Collector = (what: 'all' | 'young') => void;

/**
 * The flag belongs to the process. Another thread that looks for its function at the same time may clear the
 * flag between the two steps of this thread. In a test with four busy threads, 1 to 4 of 100 contexts had no
 * function.
 */
const ATTEMPTS = 20;

function find(): Collector | undefined {
  const { Bun } = globalThis as { Bun?: { gc(now: boolean): void } };
  if (Bun !== undefined) return (what) => (what === 'all' ? Bun.gc(true) : undefined);
  try {
    // These modules are loaded here rather than imported, so that programs that never need them do not load
    // them.
    const { setFlagsFromString } = process.getBuiltinModule('node:v8');
    const { runInNewContext } = process.getBuiltinModule('node:vm');
    // A program that was started with the flag keeps it.
    const isExposed = 'gc' in globalThis;
    for (let attempt = 0; attempt < ATTEMPTS; ++attempt) {
      // Only the new context gets the function, so that the program's own global scope has no `gc`.
      setFlagsFromString('--expose-gc');
      const gc: unknown = runInNewContext('globalThis.gc');
      if (!isExposed) setFlagsFromString('--no-expose-gc');
      // V8 collects only young objects if it gets any argument without a type, even `undefined`.
      if (typeof gc === 'function') return (what) => void (what === 'young' ? gc({ type: 'minor' }) : gc());
    }
    return undefined;
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

/** Collects young objects. Native code calls it. */
export function collectYoung(): void {
  collector()?.('young');
}
