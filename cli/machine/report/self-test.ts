/**
 * The self-test of a report. It runs every operation of `rdma-rpc perf` with both sides on this machine, and
 * reads the counters of the device before and after. Only report.ts uses this file.
 */
import { type DeviceCounters, readDeviceCounters } from '../../../runtime/counters/device-counters.ts';
import { dial } from '../../perf/dial.ts';
import { listen } from '../../perf/listen.ts';
import {
  depthDefault,
  inlineDefault,
  isLatency,
  type PerfFabric,
  type Plan,
  receiveDepthDefault,
  type TestName,
  testNames,
} from '../../perf/plan.ts';
import type { Row } from '../../perf/row.ts';

/** The subject of a self-test: a fabric, with a device if the fabric has devices. */
export interface Subject {
  readonly fabric: PerfFabric;
  readonly device?: string;
}

interface OperationResult {
  readonly test: TestName;
  readonly rows: readonly Row[];
  /** The reason why the operation has no results; empty when it has results. */
  readonly whyNot: string;
}

export interface Tested {
  readonly subject: Subject;
  readonly results: readonly OperationResult[];
  readonly before: readonly DeviceCounters[];
  readonly after: readonly DeviceCounters[];
}

interface SelfTestOptions {
  readonly sizes: readonly number[];
  readonly iterations: number;
  /** Time limit of one operation. An operation that takes longer has failed. */
  readonly limitMs: number;
}

const selfTestDefaults: SelfTestOptions = {
  sizes: [64, 4096, 65_536],
  iterations: 1000,
  limitMs: 20_000,
};

const host = '127.0.0.1';

function planOf(test: TestName, { sizes, iterations }: SelfTestOptions): Plan {
  return {
    test,
    connection: 'RC',
    atomic: 'fetch_add',
    sizes: test.startsWith('atomic') ? [8] : sizes,
    iterations,
    durationMs: 0,
    depth: depthDefault(test),
    receiveDepth: receiveDepthDefault(test),
    queuePairs: 1,
    inlineMax: inlineDefault(test),
    signalEvery: 0,
    postList: 1,
    bidirectional: false,
    validate: true,
    // With events, two sides can share one processor. write_lat has no events, so it polls.
    events: test !== 'write_lat',
    sharedReceives: false,
    manager: false,
    multicast: false,
    seed: 1,
  };
}

/** Rejects after the limit. Work that is still running then continues until the process ends. */
function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no result within ${limitMs / 1000} s`)), limitMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

async function runOne(subject: Subject, test: TestName, options: SelfTestOptions): Promise<OperationResult> {
  const plan = planOf(test, options);
  let heard: (port: number) => void = () => undefined;
  const port = new Promise<number>((resolve) => {
    heard = resolve;
  });
  const say = (text: string): void => {
    const [, bound] = /^listening on .*:(\d+)$/.exec(text) ?? [];
    if (bound !== undefined) heard(Number(bound));
  };
  const ending = new AbortController();
  const { signal } = ending;
  const server = listen({
    ...subject,
    host,
    port: 0,
    peers: 1,
    events: plan.events,
    given: {},
    signal,
    say,
  });
  // The client's error, which is awaited below, says the same as the server's.
  server.catch(() => undefined);
  try {
    const tested = await within(
      options.limitMs,
      port.then((bound) => dial(plan, { ...subject, host, port: bound, timeoutMs: options.limitMs })),
    );
    const damaged = tested.corrupt === 0 ? '' : `${tested.corrupt} messages arrived with wrong bytes`;
    return { test, rows: tested.peers[0]?.rows ?? [], whyNot: damaged };
  } catch (error) {
    return { test, rows: [], whyNot: (error as Error).message.replace(/^rdma-rpc: /, '') };
  } finally {
    ending.abort();
  }
}

/** Runs all operations on a subject, one after another. Never rejects; a failed operation has its reason. */
export async function selfTest(subject: Subject, options = selfTestDefaults): Promise<Tested> {
  const counters = (): Promise<readonly DeviceCounters[]> =>
    subject.device === undefined ? Promise.resolve([]) : readDeviceCounters([subject.device]);
  const before = await counters();
  const results: OperationResult[] = [];
  for (const test of testNames) results.push(await runOne(subject, test, options));
  return { subject, results, before, after: await counters() };
}

/** Returns a figure such as `1.9 us` for a latency test and `5210 MB/s` for a bandwidth test. */
export function figureOf(test: TestName, row: Row): string {
  if (isLatency(test)) {
    const { typical = row.meanUs ?? 0, p99 = 0 } = row.latencyUs ?? {};
    return `${typical.toFixed(2)} us (99 %: ${p99.toFixed(2)})`;
  }
  const rate = (row.bandwidth?.bytesPerSecond ?? 0) / 2 ** 20;
  // Rates of a few bytes at a time are often below 1 MB/s.
  return `${rate.toFixed(rate < 10 ? 2 : 0)} MB/s`;
}
