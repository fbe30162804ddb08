/**
 * The scheduled times of an open loop's calls. The rate is constant, or changes in steps or linearly, as in
 * ghz. It is plain arithmetic, used by load.ts and by the flags of `rdma-rpc bench`.
 */

/**
 * A part of the schedule: calls per second from `fromMs` on, changing by `slope` calls per second in each
 * second.
 */
interface Segment {
  readonly fromMs: number;
  readonly rate: number;
  readonly slope: number;
  /** Number of calls that are scheduled before the segment. */
  readonly before: number;
}

export interface Rates {
  readonly kind: 'const' | 'step' | 'line';
  /** Calls per second at the beginning. */
  readonly start: number;
  /** Change of the rate in each step, or in each second of a linear change. */
  readonly step: number;
  /**
   * Rate at which the change stops. When it is absent, the change never stops, or stops after
   * `maxDurationMs`.
   */
  readonly end?: number | undefined;
  readonly stepDurationMs: number;
  /** Time in milliseconds after which the change stops. */
  readonly maxDurationMs: number;
}

/** Maximum number of steps, because each step takes memory. A useful schedule has far fewer steps. */
const stepsMax = 100_000;

export class Schedule {
  readonly rates: Rates;
  /**
   * Time in milliseconds after which the rate is constant, including a step at its end. Infinity when the
   * rate changes for ever, or never.
   */
  readonly lengthMs: number;
  readonly #segments: Segment[] = [];
  #at = 0;

  /** Throws an Error for rates below one call per second. */
  constructor(rates: Rates) {
    this.rates = rates;
    const { kind, start, step, end, stepDurationMs, maxDurationMs } = rates;
    if (start < 1 || (end ?? start) < 1)
      throw new Error('a rate must be at least 1 call per second: raise --rps, --load-start or --load-end');
    if (end !== undefined && (end - start) * step < 0)
      throw new Error(
        `a load that begins at ${start} never reaches ${end} in steps of ${step}: change the sign of --load-step, or --load-end`,
      );
    if (step < 0 && end === undefined && kind !== 'const')
      throw new Error('a decreasing load needs an end: --load-end');
    let lengthMs = Number.POSITIVE_INFINITY;
    if (kind === 'const' || step === 0) this.#add(0, start, 0);
    else if (kind === 'line') {
      const byEndMs = end === undefined ? Number.POSITIVE_INFINITY : ((end - start) / step) * 1000;
      const untilMs = Math.min(byEndMs, maxDurationMs);
      lengthMs = untilMs;
      this.#add(0, start, step);
      if (untilMs !== Number.POSITIVE_INFINITY) this.#add(untilMs, start + (step * untilMs) / 1000, 0);
    } else {
      const limit = (rate: number): number =>
        end === undefined ? rate : step > 0 ? Math.min(rate, end) : Math.max(rate, end);
      for (let i = 0; i < stepsMax; ++i) {
        const rate = limit(start + i * step);
        this.#add(i * stepDurationMs, rate, 0);
        if (rate !== end && (i + 1) * stepDurationMs < maxDurationMs) continue;
        lengthMs = (i + 1) * stepDurationMs;
        break;
      }
    }
    this.lengthMs = Math.min(lengthMs, maxDurationMs);
  }

  #add(fromMs: number, rate: number, slope: number): void {
    const last = this.#segments.at(-1);
    const before = last === undefined ? 0 : last.before + callsIn(last, fromMs - last.fromMs);
    this.#segments.push({ fromMs, rate, slope, before });
  }

  /** Returns the scheduled time of call number `call`, without changing this schedule. */
  timeOf(call: number): number {
    return new Schedule(this.rates).intendedAt(call);
  }

  /**
   * Returns milliseconds from the beginning. The calls are numbered from 0, and this must be called in their
   * order.
   */
  intendedAt(call: number): number {
    while (this.#segments[this.#at + 1] !== undefined && this.#segments[this.#at + 1]!.before <= call)
      ++this.#at;
    const { fromMs, rate, slope, before } = this.#segments[this.#at]!;
    const calls = call - before;
    if (slope === 0) return fromMs + (calls * 1000) / rate;
    // calls = rate t + slope t² / 2, solved in a form that is precise for small slopes.
    return fromMs + (2000 * calls) / (rate + Math.sqrt(rate * rate + 2 * slope * calls));
  }

  /** Returns the number of calls that are scheduled before that time. */
  callsBefore(ms: number): number {
    const segment = this.#segments.findLast(({ fromMs }) => fromMs <= ms)!;
    // A call that is scheduled for exactly that moment does not count. The 1e-9 compensates for rounding.
    return Math.ceil(segment.before + callsIn(segment, ms - segment.fromMs) - 1e-9);
  }
}

function callsIn({ rate, slope }: Segment, ms: number): number {
  const seconds = ms / 1000;
  return rate * seconds + (slope * seconds * seconds) / 2;
}
