/**
 * The cache itself: a map with a byte budget. It refuses what does not fit instead of evicting, so that a
 * client can hold it to every value that it took. Knows nothing of RPC; used by the service.
 */

/** What an entry costs beside its value: the key, the map's slot, the objects. */
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

  /** Bytes of the budget in use, overhead included. */
  get bytes(): number {
    return this.used;
  }

  get(key: string): Entry | undefined {
    return this.entries.get(key);
  }

  /**
   * Keeps a copy of `value`, for the caller's may lie in memory that is only lent. `full`: there is no room,
   * and the old entry stays.
   */
  put(key: string, version: number, value: Uint8Array): 'added' | 'replaced' | 'full' {
    const old = this.entries.get(key);
    const used = this.used + costOf(key, value) - (old === undefined ? 0 : costOf(key, old.value));
    if (used > this.budgetBytes) return 'full';
    this.used = used;
    // Always a new array: an answer that is still on its way may be reading the old one.
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
