/**
 * Typed values that the interceptors, handler and caller of a call share within a process, such as the
 * caller's identity. They are never sent. Each call creates its ContextValues on first use.
 */

/** The key of a value. Two keys are always different, even when they have the same description. */
export interface ContextKey<T> {
  readonly id: symbol;
  readonly defaultValue: T;
}

/**
 * Creates a key for values in `ContextValues`. A key without a value has `defaultValue`. `description` is
 * shown when debugging.
 */
export function createContextKey<T>(defaultValue: T, description = ''): ContextKey<T> {
  return { id: Symbol(description), defaultValue };
}

export class ContextValues {
  /** The map is created with the first value, because most calls with interceptors set no value. */
  #values: Map<symbol, unknown> | undefined;
  readonly #outer: ContextValues | undefined;

  /** @param outer supplies the values that are not set here: the values of the handler that makes the call */
  constructor(outer?: ContextValues) {
    this.#outer = outer;
  }

  /** Returns the value, or the default value of `key` when no value is set. */
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
