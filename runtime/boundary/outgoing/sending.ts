/**
 * Large messages under way, by the token of their SENT event. A table of our own, since what comes and goes
 * fast must not be in a Map: that makes itself a new table again and again, each old one still has what was
 * in it and leads to the next, and once one of them is in V8's old space all that follow live as long as it.
 * Scavenges then copied a third of what a large call had made. Owned by BulkMessages, on its JS thread.
 */
const buckets = 256;

export interface Entry<T> {
  token: number;
  /** In its bucket. */
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

  /** Undefined: it is not there. */
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
