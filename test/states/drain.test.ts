/**
 * Tests a server that shuts down while another replaces it, at each step of each kind of call. Every call
 * succeeds, and has run once. The tests run first with a client that is notified, then with a client that is
 * not, which continues to call and is rejected. RDMA_RPC_SEEDS=5000 runs more seeds.
 */
import { expect, test, vi } from 'vitest';
import { runs } from '../extent.ts';
import type { Misfortune } from './ledger.ts';
import { Life } from './life.ts';
import { patience } from './patience.ts';

vi.mock(import('../../runtime/limits.ts'), async (original) => {
  const limits = { ...(await original()) };
  return Object.defineProperty(limits, 'goawayNoticeMs', { get: () => patience.ms });
});

const seeds = Number(process.env.RDMA_RPC_SEEDS ?? runs(100));
const kinds = ['unary', 'one-way', 'server stream', 'client stream', 'bidirectional'];
const drains: readonly Misfortune[] = ['drain', 'deaf drain'];
/** A run that may take long tries each step. */
const stride = seeds >= 1000 ? 1 : 5;
const courses = Array.from({ length: Math.max(2, Math.floor(seeds / 100)) }, (_, i) => i + 1);

test.each(kinds.flatMap((kind) => drains.map((drain) => [kind, drain] as const)))(
  '%s: %s at its steps',
  { timeout: 1_000_000 },
  async (kind, drain) => {
    for (const course of courses) {
      const life = await Life.open(course);
      for (let step = course % stride, over = false; !over; step += stride) {
        life.random.restart(course);
        const plan = life.start(kind, drain, step);
        await life.goOn();
        over = plan.events <= step;
      }
      expect(await life.end(), `course ${course}`).toEqual([]);
    }
  },
);

/** The last misfortune comes in the middle of one call, and mostly after the end of another one. */
const lastSteps = [20, 60, 300];

test(`${seeds} runs with servers that shut down, and calls that are cancelled`, {
  timeout: 1_000_000,
}, async () => {
  for (let seed = 1; seed <= seeds; ++seed) {
    const life = await Life.open(seed);
    const { random } = life;
    // A call is repeated only once, so the notices of only one server at a time are lost.
    let rare: Misfortune = 'deaf drain';
    for (let i = 1 + random.below(8); i > 0; --i) {
      const misfortune: Misfortune = random.pick(['none', 'none', 'drain', rare, 'cancel']);
      if (misfortune === rare) rare = 'none';
      life.start(random.pick(kinds), misfortune, random.below(random.pick(lastSteps)));
    }
    await life.goOn();
    expect(await life.end(), `seed ${seed}`).toEqual([]);
  }
});
