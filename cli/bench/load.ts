/**
 * Makes the calls of `rdma-rpc bench`. In a closed loop, each worker begins its next call when its last call
 * has ended. In an open loop, calls are scheduled at times that do not depend on the answers. A call that
 * finds all workers busy begins late, and its delay is recorded. It runs on the JS thread, in callbacks.
 */
import type { Clock } from './clock.ts';
import type { Schedule } from './schedule.ts';

export interface Plan {
  /** Number of workers, which is the limit of simultaneous calls. */
  readonly concurrency: number;
  /** Number of calls, or Infinity when only the time limits them. */
  readonly total: number;
  readonly durationMs: number;
  /** Undefined for a closed loop. */
  readonly schedule: Schedule | undefined;
  /** Time after the last scheduled call in which late calls may still begin. */
  readonly graceMs: number;
}

/** The outcome of a call. */
export interface End {
  readonly code: string;
  readonly message?: string;
  readonly responseBytes: number;
}

/** The promise never rejects. */
export type MakeCall = (call: number, worker: number) => Promise<End>;

/** The times of a call, in ms since the beginning. */
export interface Record {
  readonly intended: number;
  readonly started: number;
  readonly ended: number;
  readonly end: End;
}

export interface Recorder {
  record(call: number, record: Record): void;
  /**
   * Records calls that never began. They are recorded in groups of `stride`. Each record is for `count` calls
   * that were scheduled at the same time.
   */
  unsent(intended: number, ended: number, count: number): void;
}

export interface LoadEnd {
  /** Time from the beginning to the end of the last call. */
  readonly elapsedMs: number;
  readonly begun: number;
  readonly unsent: number;
  /** Number of begun calls that found all workers busy at their scheduled time. */
  readonly late: number;
}

/** Beyond this number, calls are recorded in groups, and the histogram looks as before. */
const unsentRecords = 100_000;

export class LoadRun {
  readonly #plan: Plan;
  readonly #clock: Clock;
  readonly #call: MakeCall;
  readonly #recorder: Recorder;
  readonly #idle: number[];
  #startMs = 0;
  #lastMs = 0;
  #begun = 0;
  #late = 0;
  #inFlight = 0;
  #stopMs = Number.POSITIVE_INFINITY;
  #waking = false;
  #forget: () => void = () => undefined;
  /** True while scheduled calls are waiting for a worker. */
  #busy = false;
  #over = false;
  #done: (end: LoadEnd) => void = () => undefined;

  constructor(plan: Plan, clock: Clock, call: MakeCall, recorder: Recorder) {
    this.#plan = plan;
    this.#clock = clock;
    this.#call = call;
    this.#recorder = recorder;
    this.#idle = Array.from({ length: plan.concurrency }, (_, i) => plan.concurrency - 1 - i);
  }

  get begun(): number {
    return this.#begun;
  }

  /** Time since the beginning, in milliseconds. */
  get elapsedMs(): number {
    return this.#clock.now() - this.#startMs;
  }

  /** Begins no further calls; running calls complete. */
  stop(): void {
    this.#stopMs = Math.min(this.#stopMs, this.elapsedMs);
    this.#over = true;
    this.#step();
  }

  /** Resolves when the last call has ended. */
  run(): Promise<LoadEnd> {
    this.#startMs = this.#clock.now();
    const { durationMs, graceMs, schedule } = this.#plan;
    if (schedule !== undefined && durationMs !== Number.POSITIVE_INFINITY)
      this.#forget = this.#clock.wakeAt(this.#startMs + durationMs + graceMs, () => this.stop());
    return new Promise((resolve) => {
      this.#done = resolve;
      this.#step();
    });
  }

  /** Returns the scheduled time of the next call, or undefined when all calls have begun. */
  #next(): number | undefined {
    const { total, durationMs, schedule } = this.#plan;
    if (this.#over || this.#begun >= total) return undefined;
    const at = schedule === undefined ? this.elapsedMs : schedule.intendedAt(this.#begun);
    return at < Math.min(durationMs, this.#stopMs) ? at : undefined;
  }

  #step(): void {
    let next = this.#next();
    for (; next !== undefined; next = this.#next()) {
      const now = this.elapsedMs;
      if (next > now) {
        this.#busy = false;
        this.#wakeAt(next);
        return;
      }
      const worker = this.#idle.pop();
      if (worker === undefined) {
        this.#busy = this.#plan.schedule !== undefined;
        return;
      }
      this.#begin(worker, this.#plan.schedule === undefined ? now : next, now);
    }
    this.#finish();
  }

  #begin(worker: number, intended: number, started: number): void {
    const call = this.#begun++;
    if (this.#busy) ++this.#late;
    ++this.#inFlight;
    void this.#call(call, worker).then((end) => {
      const ended = this.elapsedMs;
      this.#lastMs = ended;
      --this.#inFlight;
      this.#recorder.record(call, { intended, started, ended, end });
      const next = (): void => {
        this.#idle.push(worker);
        this.#step();
      };
      // A call may fail at once, so an iteration of the event loop passes before the next call.
      if (end.code === 'OK') next();
      else this.#clock.wakeAt(this.#clock.now(), next);
    });
  }

  #wakeAt(ms: number): void {
    if (this.#waking) return;
    this.#waking = true;
    this.#clock.wakeAt(this.#startMs + ms, () => {
      this.#waking = false;
      this.#step();
    });
  }

  #finish(): void {
    if (this.#inFlight > 0) return;
    const done = this.#done;
    this.#done = () => undefined;
    this.#forget();
    const unsent = this.#giveUp();
    done({ elapsedMs: this.#lastMs, begun: this.#begun, unsent, late: this.#late });
  }

  /** Records the scheduled calls that did not begin. Each of them has waited at least until now. */
  #giveUp(): number {
    const { schedule, durationMs, total } = this.#plan;
    if (schedule === undefined) return 0;
    const until = Math.min(durationMs, this.#stopMs);
    const meant = until === Number.POSITIVE_INFINITY ? total : Math.min(total, schedule.callsBefore(until));
    const unsent = Math.max(0, meant - this.#begun);
    const stride = Math.ceil(unsent / unsentRecords);
    const now = this.elapsedMs;
    for (let call = this.#begun; call < meant; call += stride)
      this.#recorder.unsent(schedule.intendedAt(call), now, Math.min(stride, meant - call));
    return unsent;
  }
}
