/**
 * Exact percentiles of the last calls of a measurement. A ring of samples costs the measuring loop one store
 * per call; the samples are sorted at the end. The client process uses it, and so does the example's load.
 */

export interface Percentiles {
  p50Us: number;
  p99Us: number;
  p999Us: number;
}

export class Latencies {
  private readonly samples: Float64Array;
  private count = 0;

  /** Keeps the last `capacity` samples. */
  constructor(capacity: number) {
    this.samples = new Float64Array(capacity);
  }

  record(microseconds: number): void {
    this.samples[this.count++ % this.samples.length] = microseconds;
  }

  get recorded(): number {
    return this.count;
  }

  /**
   * Returns percentiles by nearest rank: the smallest sample that at least that share of the samples does not
   * exceed. They are zeros when no sample exists.
   */
  percentiles(): Percentiles {
    const kept = this.samples.slice(0, Math.min(this.count, this.samples.length)).sort();
    const at = (share: number): number => kept[Math.max(0, Math.ceil(share * kept.length) - 1)] ?? 0;
    return { p50Us: at(0.5), p99Us: at(0.99), p999Us: at(0.999) };
  }
}
