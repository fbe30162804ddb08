/**
 * Tests pauses between attempts: how they grow, and how much of them is random.
 */
import { describe, expect, test } from 'vitest';
import { Backoff } from '../../runtime/client/connections/backoff.ts';
import * as limits from '../../runtime/limits.ts';
import { Random } from '../states/random.ts';

test('the pause grows by 1.6 up to the limit, and starts again after a success', () => {
  const backoff = new Backoff(100, 400, () => 0.5);
  const pauses = Array.from({ length: 5 }, () => Math.round(backoff.next()));
  expect(pauses).toEqual([100, 160, 256, 400, 400]);
  backoff.reset();
  expect(Math.round(backoff.next())).toBe(100);
});

test.each([
  ['least', 0, 80],
  ['most', 1, 120],
])('chance makes it 20 %% shorter or longer: %s', (_, random, pause) => {
  expect(new Backoff(100, 400, () => random).next()).toBeCloseTo(pause);
});

test('a limit below the first pause does not shorten it', () => {
  const backoff = new Backoff(100, 10, () => 0.5);
  expect([backoff.next(), backoff.next()].map(Math.round)).toEqual([100, 100]);
});

describe('spread pauses', () => {
  /** The first pause is drawn with the number `first`. The other numbers leave the pauses unchanged. */
  const pauses = (first: number, firstMs: number, maxMs: number): number[] => {
    let draws: number[] = [];
    const random = (): number => draws.shift() ?? 0.5;
    draws = [first];
    const backoff = new Backoff(firstMs, maxMs, random, true);
    const made = Array.from({ length: 5 }, () => Math.round(backoff.next()));
    draws = [first];
    backoff.reset();
    expect(Array.from({ length: 5 }, () => Math.round(backoff.next()))).toEqual(made);
    return made;
  };

  test.each([
    [0, [900, 1620, 2916, 5000, 5000]],
    [0.5, [671, 1207, 2173, 3912, 5000]],
    [1, [500, 900, 1620, 2916, 5000]],
  ])('grow by 1.8, after a first one that is drawn with %d', (first, expected) => {
    expect(pauses(first, 900, 5000)).toEqual(expected);
  });

  test('that cannot grow have a shorter first one', () => {
    expect(pauses(0, 900, 900)).toEqual([900, 900, 900, 900, 900]);
    expect(pauses(1, 900, 900)).toEqual([500, 900, 900, 900, 900]);
  });
});

/**
 * All clients lose the server at the same moment and then try to connect again. Returns the number of clients
 * that have connected in each second after the server is back.
 */
function returns(clients: number, awayMs: number): number[] {
  const chance = new Random(17);
  const random = (): number => chance.below(2 ** 32) / 2 ** 32;
  const seconds: number[] = [];
  for (let client = 0; client < clients; client++) {
    const backoff = new Backoff(limits.backoffMs.default, limits.backoffMaxMs.default, random, true);
    let at = 0;
    while (at < awayMs) at += backoff.next();
    const second = Math.floor((at - awayMs) / 1000);
    seconds[second] = (seconds[second] ?? 0) + 1;
  }
  return Array.from(seconds, (count) => count ?? 0);
}

test.each([15_000, 20_000, 30_000, 60_000, 300_000])(
  '10,000 clients of a server that was away for %i ms are back within 30 s, and no second has more than twice the even share of 15 s',
  (awayMs) => {
    const seconds = returns(10_000, awayMs);
    expect(seconds.length).toBeLessThanOrEqual(30);
    expect(Math.max(...seconds)).toBeLessThanOrEqual((2 * 10_000) / 15);
  },
);

test('a pause that the server requests is kept within the limits of this side, and changes no later pause', () => {
  for (const [random, pauses] of [
    [0, [100, 130, 400]],
    [1, [120, 156, 480]],
  ] as const) {
    const backoff = new Backoff(100, 400, () => random);
    expect([0, 130, 60_000].map((ms) => Math.round(backoff.asked(ms)))).toEqual(pauses);
    expect(Math.round(backoff.next())).toBe(random === 0 ? 80 : 120);
  }
});
