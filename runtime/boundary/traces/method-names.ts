/**
 * The names of the methods that clients and servers of this thread use, by the ids that calls carry. The
 * counters page needs them, because native code knows only ids. The names are added when clients are created
 * and when services are added; each context gets all names.
 */

/** Limits the names, because a program that creates clients from reflection could add names without end. */
const namesMax = 8192;
const names = new Map<number, string>();
const listeners = new Set<(id: number, name: string) => void>();

export function noteMethod(id: number, name: string): void {
  if (names.has(id) || names.size >= namesMax) return;
  names.set(id, name);
  for (const listener of listeners) listener(id, name);
}

/** Returns the name of a method id, or undefined when it is unknown. */
export function methodName(id: number): string | undefined {
  return names.get(id);
}

/**
 * Calls `listener` for each known name and for each name that is added later. Returns a function that removes
 * the listener.
 */
export function onMethodNames(listener: (id: number, name: string) => void): () => void {
  for (const [id, name] of names) listener(id, name);
  listeners.add(listener);
  return () => listeners.delete(listener);
}
