/**
 * `rdma-rpc ping --connections`: opens many connections and measures how many sessions per second the server
 * accepts, and how long each step lasts, as cmtime does for rdma_cm. Each connection is closed once it has
 * been measured, so that the server does not fill up with sessions.
 */
import { clockMs } from '../../runtime/clock.ts';
import { firstAnswer, reach, Stopped, type Target, timelineFor } from './reach.ts';
import { errorOf, milliseconds, type PingError } from './result.ts';
import { type StepName, stepNames, stepTexts } from './steps.ts';

export interface Percentiles {
  readonly count: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

export interface ManyResult {
  readonly address: string;
  readonly connections: number;
  readonly failed: number;
  readonly seconds: number;
  readonly sessionsPerSecond: number;
  /** Duration of each step in milliseconds, over the connections that were opened. */
  readonly steps: Partial<Readonly<Record<StepName | 'total', Percentiles>>>;
  /** Each different error once, with the number of connections that ended with it. */
  readonly errors: readonly (PingError & { readonly count: number })[];
}

/** Returns percentiles by the nearest rank. */
export function percentilesOf(values: readonly number[]): Percentiles {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
  return { count: sorted.length, p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) };
}

/**
 * Opens `connections` connections, `concurrency` of them at a time. Stops early when `signal` is aborted. The
 * promise never rejects because of a server that cannot be reached; the result counts such errors.
 */
export async function openMany(
  address: string,
  target: Target,
  { connections, concurrency }: { readonly connections: number; readonly concurrency: number },
  signal: AbortSignal,
): Promise<ManyResult> {
  const times = new Map<StepName | 'total', number[]>();
  const errors = new Map<string, PingError & { count: number }>();
  const add = (name: StepName | 'total', ms: number): void => {
    const known = times.get(name);
    if (known === undefined) times.set(name, [ms]);
    else known.push(ms);
  };
  let begun = 0;
  let opened = 0;
  let failed = 0;
  const openOne = async (): Promise<void> => {
    const timeline = timelineFor(target);
    try {
      const session = await reach(target, timeline);
      try {
        if (session.pings) await firstAnswer(session, timeline);
      } finally {
        await session.close();
      }
      ++opened;
      for (const { step, ms } of timeline.steps) add(step, ms);
      add('total', timeline.totalMs);
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
      ++failed;
      const key = `${error.step} ${error.message}`;
      const known = errors.get(key);
      if (known === undefined) errors.set(key, { ...errorOf(error), count: 1 });
      else ++known.count;
    }
  };
  const beganMs = clockMs();
  const worker = async (): Promise<void> => {
    while (begun < connections && !signal.aborted) {
      ++begun;
      await openOne();
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, connections) }, worker));
  const seconds = Math.round(clockMs() - beganMs) / 1000;
  return {
    address,
    connections: opened + failed,
    failed,
    seconds,
    sessionsPerSecond: Math.round(opened / Math.max(seconds, 0.001)),
    steps: Object.fromEntries([...times].map(([name, values]) => [name, percentilesOf(values)])),
    errors: [...errors.values()],
  };
}

const cell = (text: string): string => text.padStart(12);

export function manyText({ connections, failed, seconds, sessionsPerSecond, steps }: ManyResult): string {
  const rows = [...stepNames, 'total' as const].flatMap((name) => {
    const found = steps[name];
    if (found === undefined) return [];
    const { p50, p90, p99, max } = found;
    const what = name === 'total' ? 'all of them' : stepTexts[name];
    return [`${name.padEnd(8)}${[p50, p90, p99, max].map((ms) => cell(milliseconds(ms))).join('')}  ${what}`];
  });
  return [
    `${connections} connections in ${seconds.toFixed(2)} s: ${sessionsPerSecond} sessions/s, ${failed} failed`,
    ...(rows.length === 0
      ? []
      : [`${''.padEnd(8)}${['p50', 'p90', 'p99', 'max'].map(cell).join('')}`, ...rows]),
  ].join('\n');
}
