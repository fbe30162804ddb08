/**
 * Tests addresses whose handshakes have failed: the reasons and the time for which they are remembered.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { replaceClock } from '../../runtime/clock.ts';
import { Suspects, suspectRanks } from '../../runtime/control/handshake/suspects.ts';
import { suspectMs, suspectsMax } from '../../runtime/limits.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
  replaceClock(() => performance.now());
});
afterEach(() => {
  replaceClock(undefined);
  vi.useRealTimers();
});

test('the more handshakes of an address have failed, the higher is its rank, and a success clears it', () => {
  const suspects = new Suspects();
  const ranks: number[] = [];
  for (let failed = 0; failed <= 100; ++failed) {
    ranks.push(suspects.rank('a'));
    suspects.failed('a');
  }
  expect(ranks.slice(0, 9)).toEqual([0, 1, 2, 2, 3, 3, 3, 3, 4]);
  expect(ranks.at(-1)).toBe(suspectRanks - 1);
  expect(suspects.rank('b')).toBe(0);
  suspects.succeeded('a');
  expect(suspects.rank('a')).toBe(0);
});

test('an address that retries before its time is suspect, and one that waits is not', () => {
  const suspects = new Suspects();
  for (const address of ['early', 'punctual']) suspects.told(address, 100);
  vi.advanceTimersByTime(99);
  suspects.came('early');
  vi.advanceTimersByTime(1);
  suspects.came('punctual');
  expect([suspects.rank('early'), suspects.rank('punctual')]).toEqual([1, 0]);
});

test('a retry time that is not kept is reported once', () => {
  const suspects = new Suspects();
  expect(suspects.came('a')).toBe(false);
  for (let round = 0; round < 2; ++round) {
    suspects.told('a', 100);
    vi.advanceTimersByTime(99);
    expect([suspects.came('a'), suspects.came('a')]).toEqual([true, false]);
    vi.advanceTimersByTime(1);
    expect(suspects.came('a')).toBe(false);
  }
});

test('the rank is forgotten after its time, counted from the last failure', () => {
  const suspects = new Suspects();
  suspects.failed('a');
  vi.advanceTimersByTime(suspectMs - 1);
  suspects.failed('a');
  vi.advanceTimersByTime(suspectMs - 1);
  expect(suspects.rank('a')).toBe(2);
  vi.advanceTimersByTime(1);
  expect(suspects.rank('a')).toBe(0);
});

test('the number of suspects is limited, and the least recent one is removed', () => {
  const suspects = new Suspects();
  for (let i = 0; i <= suspectsMax; ++i) {
    suspects.failed(`address ${i}`);
    if (i > 0) suspects.failed('address 1');
  }
  expect(suspects.rank('address 0')).toBe(0);
  expect(suspects.rank('address 1')).toBe(suspectRanks - 1);
  expect(suspects.rank('address 3')).toBe(1);
});

test('peers on unix sockets have no address, so they are never suspect', () => {
  const suspects = new Suspects();
  suspects.told('', 1000);
  suspects.came('');
  suspects.failed('');
  expect(suspects.rank('')).toBe(0);
});
