/**
 * Cancels, deadlines and lost connections at each step of each kind of call, on a simulated fabric whose every event is a step: first one call after
 * the other, each struck one step later than the last, then many at once, where a seed decides what is called, what happens to it, when, and in
 * which order things arrive. RDMA_RPC_SEEDS=5000 for more of those.
 */
import { expect, test } from 'vitest';
import type { Misfortune } from './ledger.ts';
import { Life } from './life.ts';

const given = Number(process.env['RDMA_RPC_SEEDS'] ?? 0);
const seeds = given || 2000;
const kinds = ['unary', 'one-way', 'server stream', 'client stream', 'bidirectional'];
const reverseKinds = ['reverse', 'reverse one-way'];
const misfortunes: readonly Misfortune[] = ['cancel', 'deadline', 'loss'];
/** Messages, sizes and pauses of the calls that are struck one after the other. */
const courses = Array.from({ length: Math.max(2, Math.floor(given / 100)) }, (_, i) => i + 1);

test.each(
  [...kinds, ...reverseKinds].flatMap((kind) => misfortunes.map((misfortune) => [kind, misfortune] as const)),
)('%s: %s at each of its steps', { timeout: 1_000_000 }, async (kind, misfortune) => {
  const seen = new Set<string>();
  const reverse = reverseKinds.includes(kind);
  for (const course of courses) {
    let life = await Life.open(course, reverse);
    for (let step = 0, over = false; !over; ++step) {
      if (reverse && misfortune === 'loss' && step > 0) {
        // A client serves again only after a pause.
        expect(await life.end(), `course ${course}`).toEqual([]);
        life = await Life.open(course, reverse);
      }
      life.random.restart(course);
      const plan = life.start(kind, misfortune, step);
      await life.goOn();
      seen.add(plan.entry.error?.processed ?? 'OK');
      // It had ended before the misfortune came.
      over = plan.events <= step && plan.entry.error === undefined;
    }
    expect(await life.end(), `course ${course}`).toEqual([]);
  }
  expect(seen).toContain('OK');
  expect(seen).toContain('maybe');
  if (misfortune === 'cancel') expect(seen).toContain('no');
});

/** The last step of a misfortune: in the middle of one call, and mostly beyond the end of another. */
const lastSteps = [20, 60, 300];

test(`${seeds} lives with misfortunes at any step`, { timeout: 1_000_000 }, async () => {
  for (let seed = 1; seed <= seeds; ++seed) {
    const reverse = seed % 2 === 0;
    const life = await Life.open(seed, reverse);
    const { random } = life;
    const all = reverse ? [...kinds, ...reverseKinds] : kinds;
    for (let i = 1 + random.below(8); i > 0; --i) {
      const misfortune = random.chance(30)
        ? 'loss'
        : random.pick(['none', 'cancel', 'cancel', 'deadline'] as const);
      life.start(random.pick(all), misfortune, random.below(random.pick(lastSteps)));
    }
    await life.goOn();
    expect(await life.end(), `seed ${seed}`).toEqual([]);
  }
});
