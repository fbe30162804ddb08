/**
 * Samples the resources that a process holds at rest, after garbage collections. The processes of the soak
 * take a sample after each round.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { stats } from 'rdma-rpc';
import { keptByAll } from '../runtime/kept.ts';

/** Values by name. Values in `exact` must be the same at every rest; values in `wavering` may vary. */
export interface Sample {
  readonly exact: Readonly<Record<string, number>>;
  readonly wavering: Readonly<Record<string, number>>;
}

const collections = 4;
/** Idle objects are freed within this time. Objects that live longer are leaks. */
const restMs = 30_000;

function mapsOf(): number {
  return readFileSync('/proc/self/maps', 'utf8').split('\n').length - 1;
}

function exact(): Record<string, number> {
  const { mrBytes, sessions, queuePairs } = stats();
  return { ...keptByAll(), mrBytes, sessions, queuePairs, fds: readdirSync('/proc/self/fd').length };
}

/**
 * Resolves to a sample once `sessions` sessions are left and no call holds anything, or to the current state
 * after the time limit.
 */
export async function sampled(sessions = 1): Promise<Sample> {
  const { gc } = globalThis as { gc?: () => void };
  const collect = async (): Promise<void> => {
    for (let i = 0; i < collections; ++i) {
      gc?.();
      await sleep(20);
    }
  };
  const end = performance.now() + restMs;
  for (;;) {
    await collect();
    const now = exact();
    const { fds: _fds, sessions: open, queuePairs: _queuePairs, ...rest } = now;
    const quiet = open === sessions && Object.values(rest).every((count) => count === 0);
    if (!quiet && performance.now() < end) continue;
    const { heapUsed, arrayBuffers, external, rss } = process.memoryUsage();
    const { arenaBytes } = stats();
    return { exact: now, wavering: { heapUsed, arrayBuffers, external, rss, arenaBytes, maps: mapsOf() } };
  }
}
