/**
 * A row of the output of `rdma-rpc perf`, made from the reports of both sides for one size.
 */
import type { LatencyUs, Report } from './report.ts';

/** Processor time that the measuring program used during the measurement, in percent of one processor. */
export interface Cpu {
  readonly user: number;
  readonly system: number;
}

export interface Row {
  readonly bytes: number;
  readonly messages: number;
  readonly elapsedUs: number;
  /** Null in bandwidth tests, and in tests with a duration. */
  readonly latencyUs: LatencyUs | null;
  /** Mean latency of a message in tests with a duration; null in bandwidth tests. */
  readonly meanUs: number | null;
  readonly bandwidth: {
    readonly bytesPerSecond: number;
    /** Bandwidth of the fastest span of messages; null when it was not measured. */
    readonly peakBytesPerSecond: number | null;
    readonly messagesPerSecond: number;
  } | null;
  /** Number of messages that the other side has received; null when it cannot count them. */
  readonly received: number | null;
  /** Number of messages with wrong content; null without --validate. */
  readonly corrupt: number | null;
  readonly cpu: { readonly client: Cpu; readonly server: Cpu };
}

/**
 * Returns a quantile of nanoseconds in ascending order. The percentile is the sample at index n × `part` of n
 * samples, as in perftest.
 */
const quantile = (sorted: Uint32Array, part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]! / 1000;

export function latencyOf(samplesNs: Uint32Array): LatencyUs | null {
  if (samplesNs.length === 0) return null;
  const sorted = samplesNs.slice().sort();
  const count = sorted.length;
  let sum = 0;
  for (const each of sorted) sum += each;
  const mean = sum / count;
  let squares = 0;
  for (const each of sorted) squares += (each - mean) ** 2;
  const middle = (sorted[(count - 1) >> 1]! + sorted[count >> 1]!) / 2;
  return {
    min: sorted[0]! / 1000,
    max: sorted[count - 1]! / 1000,
    typical: middle / 1000,
    average: mean / 1000,
    stdev: Math.sqrt(squares / Math.max(1, count - 1)) / 1000,
    p90: quantile(sorted, 0.9),
    p99: quantile(sorted, 0.99),
    p99_9: quantile(sorted, 0.999),
    p99_99: quantile(sorted, 0.9999),
  };
}

function cpuOf({ userNs, systemNs, elapsedNs }: Report): Cpu {
  const percent = (ns: number): number => (elapsedNs === 0 ? 0 : (100 * ns) / elapsedNs);
  return { user: percent(userNs), system: percent(systemNs) };
}

export interface Measured {
  readonly bytes: number;
  readonly latency: boolean;
  readonly bidirectional: boolean;
  readonly validate: boolean;
  /** Whether each message uses a receive of the other side. */
  readonly received: boolean;
  /** Whether the other side answers each message, so that half of a round trip counts. */
  readonly answered: boolean;
  readonly client: Report;
  readonly server: Report;
}

/** In bidirectional tests, the messages of both sides are added up, as in perftest. */
export function rowOf(measured: Measured): Row {
  const { bytes, latency, bidirectional, validate, received, answered, client, server } = measured;
  const senders = bidirectional ? [client, server] : [client];
  const sum = (of: (report: Report) => number): number =>
    senders.reduce((total, report) => total + of(report), 0);
  const perSecond = sum(({ messages, elapsedNs }) => (elapsedNs === 0 ? 0 : (messages * 1e9) / elapsedNs));
  const peaks = senders.every(({ peakNs }) => peakNs > 0);
  return {
    bytes,
    messages: sum(({ messages }) => messages),
    elapsedUs: client.elapsedNs / 1000,
    latencyUs: latency ? client.latencyUs : null,
    meanUs: latency ? (client.latencyUs?.average ?? meanUs(client) / (answered ? 2 : 1)) : null,
    bandwidth: latency
      ? null
      : {
          bytesPerSecond: perSecond * bytes,
          peakBytesPerSecond: peaks ? sum(({ peakNs }) => (bytes * 1e9) / peakNs) : null,
          messagesPerSecond: perSecond,
        },
    received: received ? server.received + (bidirectional ? client.received : 0) : null,
    corrupt: validate ? client.corrupt + server.corrupt : null,
    cpu: { client: cpuOf(client), server: cpuOf(server) },
  };
}

const meanUs = ({ messages, elapsedNs }: Report): number =>
  messages === 0 ? 0 : elapsedNs / messages / 1000;
