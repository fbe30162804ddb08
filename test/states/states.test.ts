/**
 * Tests cancels, deadlines and lost connections, alone and with calls that begin in their last events, at
 * each step of each kind of call. The simulated fabric makes every event a step. First the calls run one
 * after the other; each call is affected one step later than the previous one. Then many calls run at once,
 * and a seed decides which calls are made, what happens to them, when, and in which order events arrive.
 * RDMA_RPC_SEEDS=5000 makes more such runs. The same tests then run over TCP, where an event-loop iteration
 * is a step.
 */
import { expect, test } from 'vitest';
import { everything } from '../extent.ts';
import type { Misfortune } from './ledger.ts';
import { Life } from './life.ts';
import type { Fabric } from './stepped.ts';

const given = Number(process.env.RDMA_RPC_SEEDS ?? 0);
const seeds = given || (everything ? 2000 : 200);
const kinds = ['unary', 'one-way', 'server stream', 'client stream', 'bidirectional'];
const reverseKinds = kinds.map((kind) => `reverse ${kind}`);
const misfortunes: readonly Misfortune[] = ['cancel', 'deadline', 'loss', 'busy loss'];
/** Messages, sizes and pauses of the calls that are affected one after the other. */
const courses = Array.from({ length: Math.max(2, Math.floor(given / 100)) }, (_, i) => i + 1);

/** Makes one call after the other; each is affected one step later than the previous one. */
async function atEachStep(
  kind: string,
  misfortune: Misfortune,
  course: number,
  fabric: Fabric,
): Promise<Set<string>> {
  const seen = new Set<string>();
  const reverse = reverseKinds.includes(kind);
  // A client serves again only after a pause, so each loss needs a separate life, which is slow: a brief run
  // takes every fifth step there. Where it has two courses, it takes every fourth step with each of them.
  const lives = reverse && misfortune.endsWith('loss');
  const brief = lives ? 5 : reverse ? 1 : fabric === 'tcp' ? 2 : 4;
  const stride = everything ? 1 : brief;
  const first = (course - 1) % stride;
  let life = await Life.open(course, reverse, fabric);
  for (let step = first, over = false; !over; step += stride) {
    if (lives && step > first) {
      expect(await life.end(), `course ${course}`).toEqual([]);
      life = await Life.open(course, reverse, fabric);
    }
    life.random.restart(course);
    const plan = life.start(kind, misfortune, step);
    await life.goOn();
    seen.add(plan.entry.error?.processed ?? 'OK');
    // The call had ended before the misfortune came.
    over = plan.events <= step && plan.entry.error === undefined;
  }
  expect(await life.end(), `course ${course}`).toEqual([]);
  return seen;
}

const interferences = (of: readonly string[]) =>
  of.flatMap((kind) => misfortunes.map((misfortune) => [kind, misfortune] as const));

test.each(interferences([...kinds, ...reverseKinds]))(
  '%s: %s at each of its steps',
  { timeout: 1_000_000 },
  async (kind, misfortune) => {
    const seen = new Set<string>();
    const some = reverseKinds.includes(kind) && !everything ? courses.slice(0, 1) : courses;
    for (const course of some)
      for (const outcome of await atEachStep(kind, misfortune, course, 'sim')) seen.add(outcome);
    expect(seen).toContain('maybe');
    if (misfortune === 'cancel') expect(seen).toContain('no');
  },
);

// If anything is wrong after a step, that function fails. A client that serves always holds some memory, and
// only the simulated fabric can show when it is at rest.
test.each(interferences(kinds))(
  'tcp: %s: %s at each of its turns',
  { timeout: 1_000_000 },
  async (kind, misfortune) => {
    const seen = await atEachStep(kind, misfortune, 1, 'tcp');
    // A one-way call ends once it has been sent, which may be before its connection is lost.
    if (kind !== 'one-way') expect([...seen].filter((outcome) => outcome !== 'OK')).not.toEqual([]);
    // The kernel decides what has arrived until then, but a cancel in the first iteration comes before all
    // arrivals.
    if (misfortune === 'cancel') expect(seen).toContain('no');
  },
);

/** The last misfortune comes in the middle of one call, and mostly after the end of another one. */
const lastSteps = [20, 60, 300];

/** Over TCP the kernel decides the time at which bytes arrive. */
const tcpSeeds = Math.ceil(seeds / 20);

test.each<[number, Fabric]>([
  [seeds, 'sim'],
  [tcpSeeds, 'tcp'],
])('%i lives with misfortunes at any step on %s', { timeout: 1_000_000 }, async (lives, fabric) => {
  for (let seed = 1; seed <= lives; ++seed) {
    const reverse = fabric === 'sim' && seed % 2 === 0;
    const life = await Life.open(seed, reverse, fabric);
    const { random } = life;
    const all = reverse ? [...kinds, ...reverseKinds] : kinds;
    for (let i = 1 + random.below(8); i > 0; --i) {
      const misfortune = random.chance(30)
        ? random.pick(['loss', 'busy loss'] as const)
        : random.pick(['none', 'cancel', 'cancel', 'deadline'] as const);
      life.start(random.pick(all), misfortune, random.below(random.pick(lastSteps)));
    }
    await life.goOn();
    expect(await life.end(), `seed ${seed}`).toEqual([]);
  }
});
