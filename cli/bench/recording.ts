/**
 * Records the durations of a load's calls: HdrHistograms by time interval, status codes, and every call if a
 * table of calls is requested. When calls are scheduled, each interval has two histograms: one of times since
 * the calls began, and one of times since they were scheduled. It uses a limited amount of memory,
 * independent of the number of calls. `rdma-rpc bench` uses this file.
 */
import { build } from '#hdr-histogram';
import { CallTable } from './call-table.ts';
import type { Record as CallRecord, Recorder } from './load.ts';

export type Histogram = ReturnType<typeof build>;

export interface Interval {
  readonly raw: Histogram;
  readonly corrected: Histogram | undefined;
  calls: number;
  failed: number;
}

export interface Failure {
  readonly code: string;
  readonly message: string;
  count: number;
}

const nsPerMs = 1e6;
/**
 * Maximum number of different error messages that are counted separately, because messages may contain
 * numbers.
 */
const failuresMax = 20;
const intervalsMax = 240;
const widths = [100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 3_600_000];

/** Makes a histogram of nanoseconds, with three digits of precision. */
export function newHistogram(): Histogram {
  return build({
    bitBucketSize: 32,
    autoResize: true,
    lowestDiscernibleValue: 64,
    highestTrackableValue: 2 ** 21,
    numberOfSignificantValueDigits: 3,
  });
}

export class Recording implements Recorder {
  readonly intervals: Interval[] = [];
  readonly codes = new Map<string, number>();
  readonly failures: Failure[] = [];
  readonly table: CallTable | undefined;
  /** Width of an interval, in milliseconds. */
  widthMs: number;
  responseBytes = 0;
  readonly #open: boolean;
  readonly #skip: number;

  /**
   * `expectedMs` is the expected duration in milliseconds, if known. `skip` is the number of calls at the
   * beginning that do not count.
   */
  constructor({
    open,
    expectedMs,
    skip,
    rows,
  }: {
    open: boolean;
    expectedMs: number;
    skip: number;
    rows: boolean;
  }) {
    this.#open = open;
    this.#skip = skip;
    this.table = rows ? new CallTable() : undefined;
    const wanted = Number.isFinite(expectedMs) ? expectedMs / (intervalsMax / 2) : 0;
    this.widthMs = widths.find((width) => width >= wanted) ?? widths.at(-1)!;
  }

  record(call: number, { intended, started, ended, end }: CallRecord): void {
    if (call < this.#skip) return;
    const { code, message = '', responseBytes } = end;
    this.codes.set(code, (this.codes.get(code) ?? 0) + 1);
    this.table?.add(intended, started, ended, code);
    const interval = this.#intervalAt(ended);
    ++interval.calls;
    this.responseBytes += responseBytes;
    if (code !== 'OK') {
      ++interval.failed;
      this.#fail(code, message);
      // A failed call does not count here, because a fast failure must not look like a fast answer. A call
      // that ran into its deadline does count, because its answer would have taken at least that long.
      if (code !== 'DEADLINE_EXCEEDED') return;
    }
    interval.raw.recordValue(Math.max(1, Math.round((ended - started) * nsPerMs)));
    interval.corrected?.recordValue(Math.max(1, Math.round((ended - intended) * nsPerMs)));
  }

  unsent(intended: number, ended: number, count: number): void {
    const ns = Math.max(1, Math.round((ended - intended) * nsPerMs));
    this.#intervalAt(ended).corrected?.recordValueWithCount(ns, count);
  }

  /** Returns the sum of all intervals. */
  total(which: 'raw' | 'corrected'): Histogram | undefined {
    if (which === 'corrected' && !this.#open) return undefined;
    const sum = newHistogram();
    for (const { [which]: one } of this.intervals) if (one !== undefined) sum.add(one);
    return sum;
  }

  #fail(code: string, message: string): void {
    const known = this.failures.find((each) => each.code === code && each.message === message);
    if (known !== undefined) ++known.count;
    else if (this.failures.length < failuresMax) this.failures.push({ code, message, count: 1 });
  }

  #intervalAt(ms: number): Interval {
    let index = Math.floor(ms / this.widthMs);
    while (index >= intervalsMax) {
      this.#halve();
      index = Math.floor(ms / this.widthMs);
    }
    while (this.intervals.length <= index)
      this.intervals.push({
        raw: newHistogram(),
        corrected: this.#open ? newHistogram() : undefined,
        calls: 0,
        failed: 0,
      });
    return this.intervals[index]!;
  }

  /** Merges intervals in pairs. */
  #halve(): void {
    this.widthMs *= 2;
    const all = this.intervals.splice(0);
    for (let i = 0; i < all.length; i += 2) {
      const [first, second] = [all[i]!, all[i + 1]];
      if (second !== undefined) {
        first.raw.add(second.raw);
        if (second.corrected !== undefined) first.corrected?.add(second.corrected);
        first.calls += second.calls;
        first.failed += second.failed;
      }
      this.intervals.push(first);
    }
  }
}
