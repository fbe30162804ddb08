/** Answers for an application that gives no leases back: copies, until it begins to. */
import { createClient, leaseOf } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { LeaseHabit } from '../../runtime/lane/lease-habit.ts';
import { copiedAnswerBytes } from '../../runtime/limits.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';
import { openWorld, type Way, type World } from './world.ts';

describe('a habit', () => {
  /** How many of so many answers are lent, of an application that releases one of `each` of those. */
  const lentOf = (answers: number, each: number, habit = new LeaseHabit()): number => {
    let lent = 0;
    for (let i = 0; i < answers; i++) {
      if (habit.copies(65_536)) continue;
      habit.lent();
      if (++lent % each === 0) habit.released();
    }
    return lent;
  };

  test.each([
    ['all', 1, 10_000],
    ['every second one', 2, 10_000],
    // 33, and then one of 64 to see.
    ['none', Number.POSITIVE_INFINITY, 33 + Math.floor((10_000 - 33) / 64)],
  ])('of %s: leases of 10,000 answers', (_, each, lent) => expect(lentOf(10_000, each)).toBe(lent));

  test('changes with the application', () => {
    const habit = new LeaseHabit();
    lentOf(1000, Number.POSITIVE_INFINITY, habit);
    expect(lentOf(1000, 1, habit)).toBeGreaterThan(900);
  });

  test('of long answers is of no interest: a copy would cost no less', () => {
    const habit = new LeaseHabit();
    for (let i = 0; i < 1000; i++) habit.lent();
    expect([habit.copies(copiedAnswerBytes), habit.copies(copiedAnswerBytes + 1)]).toEqual([true, false]);
  });
});

describe.each<Way>(['in process', 'shm over unix', 'tcp'])('%s', (way) => {
  let world: World;
  afterEach(async () => {
    await world.close();
  });

  test('answers that nobody gives back hold no more of the arena than some', async () => {
    world = await openWorld(way);
    const client = createClient(EchoDefinition, world.channel);
    const payload = new Uint8Array(65_536).map((_, i) => i % 251);
    const answers = [];
    for (let i = 0; i < 100; i++) answers.push(await client.echo({ payload }));
    for (const { payload: come } of answers) expect(Buffer.compare(come, payload)).toBe(0);
    const lent = answers.filter((answer) => leaseOf(answer) !== undefined);
    expect(lent.length).toBeLessThan(40);
    for (const answer of lent) leaseOf(answer)!.release();
    expect(leaseOf(await client.echo({ payload }))).toBeDefined();
  });
});
