/**
 * Large messages that are being sent, by the token of their SENT event. This is a hash table of our own
 * because entries come and go fast, for which a Map is wrong: a Map replaces its internal table again and
 * again; each old table still refers to its entries and to the next table, and once one of them is in V8's
 * old space, all that follow live as long as it. Scavenges then copied a third of what a large call had
 * allocated. Owned by BulkMessages, on its JS thread.
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
