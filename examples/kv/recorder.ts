/**
 * Counts and times the calls of the load, by operation and size. The client process uses this file.
 */

const operations = ['Get', 'Put', 'Delete'] as const;
export type Operation = (typeof operations)[number];

/** One line of the demo's table. */
export interface CallRow {
  operation: Operation;
  size: string;
  calls: number;
  errors: number;
  /** The total bytes of the values, in either direction. */
  bytes: number;
  p50Us: number;
  p99Us: number;
  p999Us: number;
}

const samplesMax = 1 << 16;

class Calls {
  calls = 0;
  errors = 0;
  bytes = 0;
  /** The last `samplesMax` latencies, in microseconds. */
  private readonly samples: number[] = [];

  record(microseconds: number): void {
    this.samples[this.calls++ % samplesMax] = microseconds;
  }

  percentiles(): { p50Us: number; p99Us: number; p999Us: number } {
    const sorted = Float64Array.from(this.samples).sort();
    const at = (share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
    return { p50Us: at(0.5), p99Us: at(0.99), p999Us: at(0.999) };
  }
}

export class Recorder {
  private readonly groups = new Map<string, { size: string; calls: Calls }>();

  /** Returns the object in which calls of this kind are counted. */
  of(operation: Operation, size: string): Calls {
    const key = `${operation} ${size}`;
    let group = this.groups.get(key);
    if (group === undefined) {
      group = { size, calls: new Calls() };
      this.groups.set(key, group);
    }
    return group.calls;
  }

  /** Returns the rows: sizes in order of first use, with the operations of each next to each other. */
  rows(): CallRow[] {
    const groups = [...this.groups.values()];
    const sizes = [...new Set(groups.map(({ size }) => size))];
    return sizes.flatMap((size) =>
      operations.flatMap((operation) => {
        const calls = this.groups.get(`${operation} ${size}`)?.calls;
        if (calls === undefined) return [];
        const { calls: count, errors, bytes } = calls;
        return [{ operation, size, calls: count, errors, bytes, ...calls.percentiles() }];
      }),
    );
  }
}
