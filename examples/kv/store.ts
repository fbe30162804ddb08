/**
 * The cache itself, which is a map with a byte budget. It refuses values that do not fit instead of evicting
 * others, so that a client can expect every value that was accepted. It is independent of RPC; the service
 * uses it.
 */

/** Size of an entry besides its value: the key, the map's slot and the objects. */
const entryOverheadBytes = 128;

export interface Entry {
  readonly version: number;
  readonly value: Uint8Array;
}

export class Store {
  readonly budgetBytes: number;
  private readonly entries = new Map<string, Entry>();
  private used = 0;

  constructor(budgetBytes: number) {
    this.budgetBytes = budgetBytes;
  }

  get size(): number {
    return this.entries.size;
  }

  /** Number of bytes of the budget that are in use, including overhead. */
  get bytes(): number {
    return this.used;
  }

  get(key: string): Entry | undefined {
    return this.entries.get(key);
  }

  /**
   * Keeps a copy of `value`, because the caller's value may lie in memory that is only lent. Returns `full`
   * when the value does not fit; the old entry then stays.
   */
  put(key: string, version: number, value: Uint8Array): 'added' | 'replaced' | 'full' {
    const old = this.entries.get(key);
    const used = this.used + costOf(key, value) - (old === undefined ? 0 : costOf(key, old.value));
    if (used > this.budgetBytes) return 'full';
    this.used = used;
    // A new array is always stored, because an answer that is still being sent may read the old array.
    this.entries.set(key, { version, value: value.slice() });
    return old === undefined ? 'added' : 'replaced';
  }

  delete(key: string): boolean {
    const old = this.entries.get(key);
    if (old === undefined) return false;
    this.used -= costOf(key, old.value);
    return this.entries.delete(key);
  }
}

function costOf(key: string, value: Uint8Array): number {
  return 2 * key.length + value.length + entryOverheadBytes;
}
