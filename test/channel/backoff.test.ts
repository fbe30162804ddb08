/** Pauses between attempts: how they grow, and how much is chance. */
import { expect, test } from 'vitest';
import { Backoff } from '../../runtime/client/connections/backoff.ts';

test('grows by 1.6 up to the limit, and begins anew when something worked', () => {
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
