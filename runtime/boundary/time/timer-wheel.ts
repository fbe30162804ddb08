/**
 * All deadlines of one JS thread under one Node timer: a hashed timer wheel with O(1) add and remove, and
 * without an object per entry. This file runs on that JS thread.
 *
 * Reading a clock costs as much as encoding a small message, so the clock is read once per turn
 * (deadlines.ts), and deadlines are computed from that time. When a turn has taken long, the deadlines that
 * were computed in it are moved by the length of the turn. An entry fires up to two ticks late, and never
 * early.
 */
import { deadlinesMax, wheelSlots, wheelTickMs } from '../../limits.ts';

export interface DeadlineOwner {
  /**
   * Runs when the deadline of an entry has passed. The entry has already been removed. This function must not
   * throw.
   */
  onDeadline(token: number): void;
}

/** An object that keeps its own deadlines, which were computed from `now`. */
export interface TurnListener {
  /**
   * Runs when a turn (deadlines.ts) has taken `lagMs` longer than was assumed when its deadlines were
   * computed. The listener must move the deadlines of this turn by `lagMs`.
   */
  onLongTurn(lagMs: number): void;
}

const none = -1;
const mask = wheelSlots - 1;

export class TimerWheel {
  /** Time of the current turn, in ms. */
  now: number;
  count = 0;

  readonly #arm: (delayMs: number) => void;
  readonly #heads = new Int32Array(wheelSlots).fill(none);
  #next = new Int32Array(0);
  #prev = new Int32Array(0);
  /** Slot of the wheel in which each entry is linked; `none` while the entry is being fired. */
  #slot = new Int32Array(0);
  #turnAdded = new Int32Array(0);
  #tick = new Float64Array(0);
  #token = new Int32Array(0);
  readonly #owner: (DeadlineOwner | undefined)[] = [];
  #free = none;

  /** Number of the current turn, an int32. */
  turn = 0;
  /**
   * The listeners that have computed deadlines in the current turn. They are listed so that the cost of a
   * long turn depends on the calls of that turn, and not on the number of all entries.
   */
  readonly #listeners: (TurnListener | undefined)[] = [];
  #listenerCount = 0;
  readonly #recent: number[] = [];
  #recentCount = 0;

  #lastTick: number;
  #armedTick = Infinity;

  /** `arm` schedules `run()` after the given number of milliseconds, and replaces an earlier schedule. */
  constructor(nowMs: number, arm: (delayMs: number) => void) {
    this.now = nowMs;
    this.#lastTick = Math.floor(nowMs / wheelTickMs);
    this.#arm = arm;
    this.#grow(256);
  }

  /** Adds an entry. Returns the entry's number, for `remove`. `token` is an int32. */
  add(deadlineMs: number, owner: DeadlineOwner, token: number): number {
    if (this.#free === none) this.#grow(this.#next.length * 2);
    const id = this.#free;
    this.#free = this.#next[id]!;
    this.#owner[id] = owner;
    this.#token[id] = token;
    this.#turnAdded[id] = this.turn;
    this.#recent[this.#recentCount++] = id;
    ++this.count;
    // The entry goes to the tick after the deadline's own tick, because `now` may be up to one tick old.
    this.#link(id, Math.ceil(deadlineMs / wheelTickMs) + 1);
    return id;
  }

  remove(id: number): void {
    if (this.#slot[id] === none) {
      this.#owner[id] = undefined;
      return;
    }
    this.#unlink(id);
    this.#release(id);
  }

  /**
   * Registers a listener, which is notified when the turn has been long. The code that computes the first
   * deadline of a turn calls it.
   */
  listen(listener: TurnListener): void {
    this.#listeners[this.#listenerCount++] = listener;
  }

  /** Begins a turn at `nowMs`. */
  refresh(nowMs: number): void {
    this.#recentCount = 0;
    while (this.#listenerCount > 0) this.#listeners[--this.#listenerCount] = undefined;
    this.turn = (this.turn + 1) | 0;
    if (nowMs > this.now) this.now = nowMs;
  }

  /** Ends a turn. If the turn has taken long, moves the deadlines that were computed in it. */
  endTurn(nowMs: number): void {
    const lagMs = nowMs - this.now;
    if (lagMs > wheelTickMs) {
      this.#postpone(Math.ceil(lagMs / wheelTickMs));
      for (let i = 0; i < this.#listenerCount; ++i) this.#listeners[i]!.onLongTurn(lagMs);
    }
    this.refresh(nowMs);
  }

  /** Fires the entries that are due, and schedules the next run. */
  run(nowMs: number): void {
    this.refresh(nowMs);
    const nowTick = Math.floor(this.now / wheelTickMs);
    const due: number[] = [];
    for (let tick = Math.max(this.#lastTick + 1, nowTick - mask); tick <= nowTick; ++tick) {
      for (let id = this.#heads[tick & mask]!; id !== none; ) {
        const after = this.#next[id]!;
        if (this.#tick[id]! <= nowTick) {
          this.#unlink(id);
          due.push(id);
        }
        id = after;
      }
    }
    this.#lastTick = nowTick;
    this.#armedTick = Infinity;
    for (const id of due) {
      const owner = this.#owner[id];
      const token = this.#token[id]!;
      this.#release(id);
      if (owner !== undefined) owner.onDeadline(token);
    }
    this.#armNext();
  }

  #armNext(): void {
    if (this.count === 0) return;
    for (let tick = this.#lastTick + 1; tick <= this.#lastTick + wheelSlots; ++tick) {
      if (this.#heads[tick & mask] !== none) {
        this.#armAt(tick);
        return;
      }
    }
  }

  #armAt(tick: number): void {
    const wake = Math.min(tick, this.#lastTick + wheelSlots);
    if (wake >= this.#armedTick) return;
    this.#armedTick = wake;
    this.#arm(Math.max(1, Math.ceil(wake * wheelTickMs - this.now)));
  }

  #postpone(ticks: number): void {
    for (let i = 0; i < this.#recentCount; ++i) {
      const id = this.#recent[i]!;
      if (this.#turnAdded[id] !== this.turn || this.#owner[id] === undefined) continue;
      this.#turnAdded[id] = this.turn - 1;
      this.#unlink(id);
      this.#link(id, this.#tick[id]! + ticks);
    }
  }

  #link(id: number, wanted: number): void {
    const tick = wanted > this.#lastTick ? wanted : this.#lastTick + 1;
    const slot = tick & mask;
    const head = this.#heads[slot]!;
    this.#tick[id] = tick;
    this.#slot[id] = slot;
    this.#next[id] = head;
    this.#prev[id] = none;
    if (head !== none) this.#prev[head] = id;
    this.#heads[slot] = id;
    if (tick < this.#armedTick) this.#armAt(tick);
  }

  #unlink(id: number): void {
    const next = this.#next[id]!;
    const prev = this.#prev[id]!;
    if (next !== none) this.#prev[next] = prev;
    if (prev !== none) this.#next[prev] = next;
    else this.#heads[this.#slot[id]!] = next;
    this.#slot[id] = none;
  }

  #release(id: number): void {
    this.#owner[id] = undefined;
    this.#next[id] = this.#free;
    this.#free = id;
    --this.count;
  }

  #grow(capacity: number): void {
    if (capacity > deadlinesMax) throw new RangeError(`more than ${deadlinesMax} deadlines at once`);
    const copy = (old: Int32Array<ArrayBuffer>) => {
      const grown = new Int32Array(capacity);
      grown.set(old);
      return grown;
    };
    const before = this.#next.length;
    const ticks = new Float64Array(capacity);
    ticks.set(this.#tick);
    this.#tick = ticks;
    this.#next = copy(this.#next);
    this.#prev = copy(this.#prev);
    this.#slot = copy(this.#slot);
    this.#turnAdded = copy(this.#turnAdded);
    this.#token = copy(this.#token);
    for (let id = capacity - 1; id >= before; --id) {
      this.#owner[id] = undefined;
      this.#next[id] = this.#free;
      this.#free = id;
    }
  }
}
