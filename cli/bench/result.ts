/**
 * The result of `rdma-rpc bench`, as `--json` prints it (docs/schemas/bench.schema.json) and as the page
 * contains it. Times are in ms, latencies in microseconds.
 */
import type { Stats } from '../../runtime/native/native.ts';
import type { LoadEnd } from './load.ts';
import { type Histogram, newHistogram, type Recording } from './recording.ts';
import type { Rates } from './schedule.ts';
import type { Target } from './target.ts';

export interface Latency {
  readonly count: number;
  readonly min: number;
  readonly mean: number;
  readonly stdDev: number;
  readonly p50: number;
  readonly p75: number;
  readonly p90: number;
  readonly p95: number;
  readonly p99: number;
  readonly p99_9: number;
  readonly p99_99: number;
  readonly max: number;
}

export interface Load {
  readonly loop: 'open' | 'closed';
  readonly concurrency: number;
  readonly connections: number;
  readonly total?: number;
  readonly durationMs?: number;
  readonly skipFirst: number;
  readonly timeoutMs: number;
  readonly schedule?: {
    readonly kind: string;
    readonly start: number;
    readonly step?: number;
    readonly end?: number;
  };
}

export interface Travelled {
  /**
   * `bulk` is the number of messages that were sent by READ and WRITE from memory outside of the slots;
   * `sent` is the number of messages that were sent in a SEND. `null` when this side does not know the
   * number.
   */
  readonly requests: { readonly bulk: number; readonly sent: number };
  readonly responses: { readonly bulk: number; readonly sent: number } | null;
  /**
   * Frames that this side has sent: `inline` were copied into the send queue, and `eager` were sent from a
   * registered slot.
   */
  readonly frames: { readonly inline: number; readonly eager: number };
}

export interface Result {
  readonly version: 1;
  readonly target: { readonly address: string; readonly method: string } & Target['transport'];
  readonly load: Load;
  readonly startedAt: string;
  readonly elapsedMs: number;
  readonly stopped: boolean;
  readonly calls: {
    readonly begun: number;
    readonly ok: number;
    readonly failed: number;
    /** Number of calls that `--skip-first` leaves out. */
    readonly skipped: number;
    /** Number of calls that found all workers busy at their scheduled time. */
    readonly late: number;
    readonly unsent: number;
  };
  readonly callsPerSecond: number;
  readonly bytes: { readonly requests: number; readonly responses: number };
  readonly latencyUs: { readonly raw: Latency; readonly corrected: Latency | null };
  readonly percentiles: readonly {
    readonly percentile: number;
    readonly raw: number;
    readonly corrected?: number;
  }[];
  readonly histogram: readonly {
    readonly from: number;
    readonly to: number;
    readonly raw: number;
    readonly corrected?: number;
  }[];
  readonly intervals: readonly {
    readonly fromMs: number;
    readonly toMs: number;
    readonly calls: number;
    readonly failed: number;
    readonly p50: number | null;
    readonly p99: number | null;
    readonly max: number | null;
  }[];
  readonly travelled: Travelled | null;
  readonly codes: { readonly [code: string]: number };
  readonly errors: readonly { readonly code: string; readonly message: string; readonly count: number }[];
}

/** Converts nanoseconds to microseconds, with the precision of a histogram with three digits. */
const us = (ns: number): number => Number((ns / 1000).toPrecision(4));
const at = (histogram: Histogram, percentile: number): number =>
  us(histogram.totalCount === 0 ? 0 : histogram.getValueAtPercentile(percentile));

function latencyOf(histogram: Histogram): Latency {
  const none = histogram.totalCount === 0;
  return {
    count: histogram.totalCount,
    min: none ? 0 : us(histogram.minNonZeroValue),
    mean: none ? 0 : us(histogram.mean),
    stdDev: none ? 0 : us(histogram.stdDeviation),
    p50: at(histogram, 50),
    p75: at(histogram, 75),
    p90: at(histogram, 90),
    p95: at(histogram, 95),
    p99: at(histogram, 99),
    p99_9: at(histogram, 99.9),
    p99_99: at(histogram, 99.99),
    max: none ? 0 : us(histogram.maxValue),
  };
}

/**
 * Returns percentile 0, and then ten percentiles for each further nine, while the number of samples can
 * distinguish them.
 */
function percentilesOf(count: number): number[] {
  const found: number[] = [];
  for (let exponent = 0; exponent <= Math.log10(Math.max(10, count)); exponent += 0.1)
    found.push(Number((100 * (1 - 10 ** -exponent)).toPrecision(9)));
  return [...found, 100];
}

const barsPerDecade = 10;

/** Bars of equal width on a logarithmic axis, from the smallest to the largest value. */
function barsOf(raw: Histogram, corrected: Histogram | undefined): Result['histogram'] {
  if (raw.totalCount === 0 && (corrected?.totalCount ?? 0) === 0) return [];
  const all = [raw, corrected].filter((each) => each !== undefined && each.totalCount > 0);
  const index = (ns: number): number => Math.floor(Math.log10(ns) * barsPerDecade + 1e-9);
  const first = Math.min(...all.map((each) => index(Math.max(1, each!.minNonZeroValue))));
  const last = Math.max(...all.map((each) => index(each!.maxValue)));
  const shares = (histogram: Histogram | undefined): number[] => {
    const counts = new Array<number>(last - first + 1).fill(0);
    for (const { value, count } of recorded(histogram)) {
      const bar = Math.min(last, Math.max(first, index(Math.max(1, value)))) - first;
      counts[bar] = counts[bar]! + count;
    }
    return counts;
  };
  const [rawCounts, correctedCounts] = [shares(raw), shares(corrected)];
  return rawCounts.map((count, i) => ({
    from: us(10 ** ((first + i) / barsPerDecade)),
    to: us(10 ** ((first + i + 1) / barsPerDecade)),
    raw: count,
    ...(corrected === undefined ? {} : { corrected: correctedCounts[i]! }),
  }));
}

interface Recorded {
  readonly value: number;
  readonly count: number;
}

/** Iterates over the recorded values, by an iterator that the types do not declare. */
function* recorded(histogram: Histogram | undefined): Generator<Recorded> {
  if (histogram === undefined) return;
  const iterator = (
    histogram as unknown as {
      recordedValuesIterator: {
        reset(): void;
        hasNext(): boolean;
        next(): { valueIteratedTo: number; countAddedInThisIterationStep: number };
      };
    }
  ).recordedValuesIterator;
  iterator.reset();
  while (iterator.hasNext()) {
    const { valueIteratedTo: value, countAddedInThisIterationStep: count } = iterator.next();
    yield { value, count };
  }
}

/**
 * A short interval at the end is merged into the interval before it, because the rate of a millisecond is
 * meaningless.
 */
function intervalsOf({ intervals, widthMs }: Recording, elapsedMs: number): Result['intervals'] {
  const all = intervals.map(({ calls, failed, ...histograms }, i) => ({
    fromMs: i * widthMs,
    toMs: (i + 1) * widthMs,
    calls,
    failed,
    histogram: histograms.corrected ?? histograms.raw,
  }));
  const last = all.at(-1);
  if (last !== undefined) last.toMs = Math.max(last.fromMs, Math.min(last.toMs, elapsedMs));
  const before = all.at(-2);
  if (last !== undefined && before !== undefined && last.toMs - last.fromMs < widthMs / 2) {
    all.pop();
    const both = newHistogram();
    both.add(before.histogram);
    both.add(last.histogram);
    before.histogram = both;
    before.toMs = last.toMs;
    before.calls += last.calls;
    before.failed += last.failed;
  }
  return all.map(({ histogram, ...interval }) => {
    const value = (percentile: number): number | null =>
      histogram.totalCount === 0 ? null : at(histogram, percentile);
    return { ...interval, p50: value(50), p99: value(99), max: value(100) };
  });
}

export function scheduleOf({ kind, start, step, end }: Rates): NonNullable<Load['schedule']> {
  if (kind === 'const') return { kind, start };
  return { kind, start, step, ...(end === undefined ? {} : { end }) };
}

/**
 * Returns how the messages of a load were transferred, from counters before and after it. `messages` is the
 * number of sent messages, and `answers` the number of answered calls. Returns null when the counts are
 * unknown.
 */
export function travelledIn(
  before: Stats | undefined,
  after: Stats | undefined,
  { messages, answers: answered }: { readonly messages: number; readonly answers: number },
  responseStream: boolean,
): Travelled | null {
  if (before === undefined || after === undefined) return null;
  const moved = (name: keyof Stats): number => Math.max(0, after[name] - before[name]);
  // When the last connection of a device closes, its counters disappear with it.
  if (moved('calls') < answered) return null;
  const [bulk, answers] = [moved('bulkRequests'), moved('bulkResponses')];
  return {
    requests: { bulk, sent: Math.max(0, messages - bulk) },
    responses: responseStream ? null : { bulk: answers, sent: Math.max(0, moved('calls') - answers) },
    frames: { inline: moved('inlineSends'), eager: moved('eagerSends') },
  };
}

export interface Found {
  readonly target: Result['target'];
  readonly load: Load;
  readonly startedAt: Date;
  readonly stopped: boolean;
  readonly end: LoadEnd;
  readonly recording: Recording;
  readonly requestBytes: number;
  readonly travelled: Travelled | null;
}

export function resultOf({ end, recording, startedAt, requestBytes, ...rest }: Found): Result {
  const raw = recording.total('raw')!;
  const corrected = recording.total('corrected');
  const counted = [...recording.codes.values()].reduce((sum, count) => sum + count, 0);
  const ok = recording.codes.get('OK') ?? 0;
  return {
    version: 1,
    target: rest.target,
    load: rest.load,
    startedAt: startedAt.toISOString(),
    elapsedMs: end.elapsedMs,
    stopped: rest.stopped,
    calls: {
      begun: end.begun,
      ok,
      failed: counted - ok,
      skipped: end.begun - counted,
      late: end.late,
      unsent: end.unsent,
    },
    callsPerSecond: end.elapsedMs === 0 ? 0 : (1000 * end.begun) / end.elapsedMs,
    bytes: { requests: requestBytes, responses: recording.responseBytes },
    latencyUs: { raw: latencyOf(raw), corrected: corrected === undefined ? null : latencyOf(corrected) },
    percentiles:
      raw.totalCount === 0
        ? []
        : percentilesOf(Math.max(raw.totalCount, corrected?.totalCount ?? 0)).map((percentile) => ({
            percentile,
            raw: at(raw, percentile),
            ...(corrected === undefined ? {} : { corrected: at(corrected, percentile) }),
          })),
    histogram: barsOf(raw, corrected),
    intervals: intervalsOf(recording, end.elapsedMs),
    travelled: rest.travelled,
    codes: Object.fromEntries([...recording.codes].sort(([, a], [, b]) => b - a)),
    errors: [...recording.failures].sort((a, b) => b.count - a.count),
  };
}
