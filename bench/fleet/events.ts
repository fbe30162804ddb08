/**
 * The virtual clock of the simulated fleet. It has events ordered by time; events of the same time keep the
 * order in which they were planned. It is a heap, because 10,000 nodes have millions of events.
 */
interface Planned {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

const before = (a: Planned, b: Planned): boolean =>
  a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

export class Events {
  nowMs = 0;
  #order = 0;
  readonly #heap: Planned[] = [];

  after(ms: number, run: () => void): void {
    const heap = this.#heap;
    const planned = { atMs: this.nowMs + ms, order: this.#order++, run };
    let at = heap.length;
    heap.push(planned);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!before(planned, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = planned;
  }

  /** Runs all events up to `endMs`. */
  runUntil(endMs: number): void {
    for (let next = this.#heap[0]; next !== undefined && next.atMs <= endMs; next = this.#heap[0]) {
      this.#removeFirst();
      this.nowMs = next.atMs;
      next.run();
    }
    this.nowMs = endMs;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) ++child;
      if (!before(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
  }
}
