/**
 * Typed values that interceptors, handlers and callers of one call give each other in the same process, such
 * as who the caller is. Nothing of it travels. Made only when somebody asks for it.
 */

/** Names a value. Two keys are never the same, whatever their descriptions. */
export interface ContextKey<T> {
  readonly id: symbol;
  readonly defaultValue: T;
}

/** `description` is for people who debug. */
export function createContextKey<T>(defaultValue: T, description = ''): ContextKey<T> {
  return { id: Symbol(description), defaultValue };
}

export class ContextValues {
  /** Made for the first value: most calls within interceptors have none. */
  #values: Map<symbol, unknown> | undefined;
  readonly #outer: ContextValues | undefined;

  /** @param outer where values come from that this one does not have: the handler's that makes the call */
  constructor(outer?: ContextValues) {
    this.#outer = outer;
  }

  /** The value, or the default of its key. */
  get<T>(key: ContextKey<T>): T {
    if (this.#values?.has(key.id)) return this.#values.get(key.id) as T;
    return this.#outer === undefined ? key.defaultValue : this.#outer.get(key);
  }

  set<T>(key: ContextKey<T>, value: T): this {
    this.#values ??= new Map();
    this.#values.set(key.id, value);
    return this;
  }
}
