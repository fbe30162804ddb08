/**
 * Large messages that are being sent, by the token of their SENT event. It is a hash table of our own,
 * because a Map is unsuitable for entries that come and go quickly. A Map replaces its internal table again
 * and again, and each old table still refers to its entries and to the next table. When an old table has
 * moved to V8's old space, all following tables live as long as that table. Scavenges then copied a third of
 * the memory that a large call had allocated. BulkMessages owns this object and uses it on its JS thread.
 */
const buckets = 256;

export interface Entry<T> {
  token: number;
  /** The next entry of the same bucket. */
  next: T | undefined;
}

export class Sending<T extends Entry<T>> {
  size = 0;
  readonly #first: (T | undefined)[] = new Array<T | undefined>(buckets).fill(undefined);

  add(token: number, entry: T): void {
    const bucket = token % buckets;
    entry.token = token;
    entry.next = this.#first[bucket];
    this.#first[bucket] = entry;
    this.size++;
  }

  /** Removes and returns the entry of a token, or undefined. */
  take(token: number): T | undefined {
    const bucket = token % buckets;
    let before: T | undefined;
    for (let entry = this.#first[bucket]; entry !== undefined; entry = entry.next) {
      if (entry.token === token) {
        if (before === undefined) this.#first[bucket] = entry.next;
        else before.next = entry.next;
        entry.next = undefined;
        this.size--;
        return entry;
      }
      before = entry;
    }
    return undefined;
  }
}
