/**
 * The view of a process in `rdma-rpc top`: rates between two readings of its counters, and its current state.
 * `--json` prints it.
 */

import { type DeviceCounters, isTrouble } from '../../runtime/counters/device-counters.ts';
import type { ContextCounters, MethodCounters, SessionCounters } from '../../runtime/counters/page.ts';
import { bucketsSince, percentile } from '../../runtime/counters/percentile.ts';
import type { ProcessCounters } from '../../runtime/counters/processes.ts';
import { addStats, gauges, type Stats } from '../../runtime/native/stats.ts';

export interface MethodView {
  readonly method: string;
  readonly side: 'client' | 'server';
  readonly fabric: string;
  readonly calls: number;
  readonly callsPerSecond: number;
  readonly failedPerSecond: number;
  /** The calls that ended between the two readings. They are null when no call ended. */
  readonly p50Us: number | null;
  readonly p99Us: number | null;
}

export type SessionView = Omit<SessionCounters, 'number'> & {
  readonly fabric: string;
  readonly inPerSecond: number;
  readonly outPerSecond: number;
};

export interface ContextView {
  readonly fabric: string;
  readonly device: string;
  /**
   * Time in milliseconds for which the thread has been awake without polling for completions. The value is 0
   * when the thread polls or sleeps.
   */
  readonly blockedMs: number;
  /**
   * The longest time, in milliseconds, for which the thread was awake without polling within the last one or
   * two seconds of traffic.
   */
  readonly lagMaxMs: number;
}

/** A port of a device that the process uses, or the device as a whole (port 0). */
export interface DeviceView {
  readonly device: string;
  readonly port: number;
  /**
   * Error counters of the device, which do not grow while the device works well. These counters are for all
   * processes together.
   */
  readonly counters: Readonly<Record<string, number>>;
  /** The rates of the counters that have grown between the two readings. */
  readonly perSecond: Readonly<Record<string, number>>;
}

export interface View {
  readonly pid: number;
  readonly command: string;
  readonly state: string;
  /** Time between the two readings. */
  readonly seconds: number;
  /** Processor time in percent of one processor. */
  readonly cpuPercent: number;
  readonly rssBytes: number;
  readonly contexts: readonly ContextView[];
  readonly devices: readonly DeviceView[];
  /** The counters of all contexts: their values, and for counters of events also their rates. */
  readonly counters: Readonly<Partial<Record<keyof Stats, number>>>;
  readonly perSecond: Readonly<Partial<Record<keyof Stats, number>>>;
  readonly methods: readonly MethodView[];
  readonly sessions: readonly SessionView[];
}

/**
 * If the last event-loop iteration of an awake thread is older than this, the thread is late, because such a
 * thread polls all the time.
 */
const lateMs = 100;

type Sums = Partial<Record<keyof Stats, number>>;

type Paired = readonly [context: ContextCounters, before: ContextCounters | undefined];

/**
 * Contexts and entries may appear and disappear between two readings. A new or restarted context counts from
 * zero.
 */
const since = (now: number, before: number | undefined): number =>
  now < (before ?? 0) ? now : now - (before ?? 0);

const usOf = (ns: number | undefined): number | null => (ns === undefined ? null : ns / 1000);

function methodView(
  now: MethodCounters,
  before: MethodCounters | undefined,
  { fabric, bucketNs }: ContextCounters,
  seconds: number,
): MethodView {
  const buckets = bucketsSince(now.buckets, before?.buckets);
  return {
    method: now.name,
    side: now.side,
    fabric,
    calls: now.calls,
    callsPerSecond: since(now.calls, before?.calls) / seconds,
    failedPerSecond: since(now.failed, before?.failed) / seconds,
    p50Us: usOf(percentile(buckets, bucketNs, 0.5)),
    p99Us: usOf(percentile(buckets, bucketNs, 0.99)),
  };
}

function sessionView(
  { number: _, ...now }: SessionCounters,
  before: SessionCounters | undefined,
  fabric: string,
  seconds: number,
): SessionView {
  return {
    ...now,
    fabric,
    inPerSecond: since(now.bytesIn, before?.bytesIn) / seconds,
    outPerSecond: since(now.bytesOut, before?.bytesOut) / seconds,
  };
}

function contextView(
  { fabric, device, turnNs, awake, counters }: ContextCounters,
  atNs: number,
): ContextView {
  const idleMs = awake ? Math.max(0, atNs - turnNs) / 1e6 : 0;
  return {
    fabric,
    device,
    blockedMs: idleMs < lateMs ? 0 : Math.round(idleMs),
    lagMaxMs: (counters.loopLagMaxUs ?? 0) / 1000,
  };
}

/**
 * Each context is compared separately, so that the counts of a closed context are not subtracted from those
 * of other contexts.
 */
function ratesOf(pairs: readonly Paired[], seconds: number): Sums {
  const rates: Sums = {};
  for (const [{ counters }, before] of pairs) {
    const counted = Object.entries(counters) as [keyof Stats, number][];
    const added = counted
      .filter(([name]) => !gauges.has(name))
      .map(([name, value]) => [name, since(value, before?.counters[name]) / seconds]);
    addStats(rates, Object.fromEntries(added));
  }
  return rates;
}

/** A counter without an earlier reading has not grown. */
function deviceView(
  { device, port, counters: all }: DeviceCounters,
  before: DeviceCounters | undefined,
  seconds: number,
): DeviceView {
  const counted = Object.entries(all).filter(([name]) => isTrouble(name));
  const rates = counted.map(([name, value]): [string, number] => [
    name,
    since(value, before?.counters[name] ?? value) / seconds,
  ]);
  return {
    device,
    port,
    counters: Object.fromEntries(counted),
    perSecond: Object.fromEntries(rates.filter(([, rate]) => rate > 0)),
  };
}

/** The counters of a process's devices at the two readings. */
export interface DeviceReadings {
  readonly now: readonly DeviceCounters[];
  readonly before: readonly DeviceCounters[];
}

export function viewOf(
  now: ProcessCounters,
  before: ProcessCounters,
  devices: DeviceReadings = { now: [], before: [] },
): View {
  const seconds = Math.max(1e-3, (now.atNs - before.atNs) / 1e9);
  const counters: Sums = {};
  for (const context of now.contexts) addStats(counters, context.counters);
  const earlier = new Map(before.contexts.map((context) => [context.id, context]));
  const pairs = now.contexts.map((context): Paired => [context, earlier.get(context.id)]);
  const methods = pairs.flatMap(([context, was]) =>
    context.methods.map((each) => {
      const same = was?.methods.find(({ name, side }) => name === each.name && side === each.side);
      return methodView(each, same, context, seconds);
    }),
  );
  const sessions = pairs.flatMap(([context, was]) =>
    context.sessions.map((each) => {
      const same = was?.sessions.find(({ number }) => number === each.number);
      return sessionView(each, same, context.fabric, seconds);
    }),
  );
  return {
    pid: now.pid,
    command: now.command,
    state: now.state,
    seconds,
    cpuPercent: since(now.cpuMs, before.cpuMs) / seconds / 10,
    rssBytes: now.rssBytes,
    contexts: now.contexts.map((context) => contextView(context, now.atNs)),
    devices: devices.now.map((each) => {
      const same = devices.before.find(({ device, port }) => device === each.device && port === each.port);
      return deviceView(each, same, seconds);
    }),
    counters,
    perSecond: ratesOf(pairs, seconds),
    methods: methods.sort((a, b) => b.callsPerSecond - a.callsPerSecond || b.calls - a.calls),
    sessions: sessions.sort((a, b) => b.inPerSecond + b.outPerSecond - a.inPerSecond - a.outPerSecond),
  };
}
