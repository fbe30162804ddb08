/**
 * Names of the methods that clients and servers of this thread have, by the ids that calls carry: for the
 * counters page, which knows only ids. Filled when clients are made and services added; each context gets all
 * of them.
 */

/** Programs that make clients from what servers declare could go on for ever. */
const namesMax = 8192;
const names = new Map<number, string>();
const listeners = new Set<(id: number, name: string) => void>();

export function noteMethod(id: number, name: string): void {
  if (names.has(id) || names.size >= namesMax) return;
  names.set(id, name);
  for (const listener of listeners) listener(id, name);
}

/** Of an id; undefined: nobody has named it. */
export function methodName(id: number): string | undefined {
  return names.get(id);
}

/** Calls `listener` for each name, those to come included, until the function that this returns is called. */
export function onMethodNames(listener: (id: number, name: string) => void): () => void {
  for (const [id, name] of names) listener(id, name);
  listeners.add(listener);
  return () => listeners.delete(listener);
}
