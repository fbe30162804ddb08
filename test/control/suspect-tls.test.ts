/**
 * Tests TLS with addresses whose handshakes have failed. The tests check when each of them may begin, and
 * which handshakes wait for which others.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { replaceClock } from '../../runtime/clock.ts';
import { SuspectTls } from '../../runtime/control/handshake/suspect-tls.ts';
import { suspectTlsApartMs } from '../../runtime/limits.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  replaceClock(() => performance.now());
});
afterEach(() => {
  replaceClock(undefined);
  vi.useRealTimers();
});

/** Returns a SuspectTls for numbers; `rankOf` returns the rank of a number. */
function paced(max: number, rankOf: (one: number) => number) {
  const begun: number[] = [];
  const evicted: number[] = [];
  const all = new SuspectTls<number>(max, { rank: rankOf, evict: (one) => evicted.push(one) });
  const arrive = (one: number): Promise<void> | undefined =>
    all.before(one, () => {
      begun.push(one);
      return undefined;
    });
  return { all, begun, evicted, arrive };
}

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

test('other addresses begin at once, however many suspects wait', async () => {
  const { begun, arrive } = paced(8, (one) => (one < 100 ? 1 : 0));
  for (const one of [0, 1, 2]) arrive(one);
  for (const one of [100, 101, 102]) expect(arrive(one)).toBeUndefined();
  expect(begun).toEqual([0, 100, 101, 102]);
});

test('suspects begin one by one, also those that come after a pause', async () => {
  const { begun, arrive } = paced(8, () => 1);
  expect(arrive(0)).toBeUndefined();
  for (const one of [1, 2, 3]) arrive(one);
  await pass(suspectTlsApartMs - 1);
  expect(begun).toEqual([0]);
  await pass(1);
  expect(begun).toEqual([0, 1]);
  await pass(2 * suspectTlsApartMs);
  expect(begun).toEqual([0, 1, 2, 3]);
  await pass(100 * suspectTlsApartMs);
  for (const one of [4, 5, 6]) arrive(one);
  expect(begun).toEqual([0, 1, 2, 3, 4]);
});

test('lower ranks begin first, except every fourth time; those that have left are passed over', async () => {
  const { all, begun, arrive } = paced(8, (one) => (one < 4 ? 5 : 1));
  for (let one = 0; one < 9; ++one) arrive(one);
  all.leave(5);
  await pass(10 * suspectTlsApartMs);
  expect(begun).toEqual([0, 4, 6, 7, 1, 8, 2, 3]);
});

test('when too many wait, the oldest handshake of the highest rank is evicted', async () => {
  const { begun, evicted, arrive } = paced(2, (one) => (one < 4 ? 2 : 1));
  for (let one = 0; one < 5; ++one) arrive(one);
  expect(evicted).toEqual([1, 2]);
  await pass(10 * suspectTlsApartMs);
  expect(begun).toEqual([0, 4, 3]);
});

test('an error of a handshake is reported in its own turn', async () => {
  const all = new SuspectTls<number>(8, { rank: () => 1, evict: () => undefined });
  const fail = (): never => {
    throw new Error('no room');
  };
  expect(() => all.before(0, fail)).toThrow('no room');
  const later = expect(all.before(1, fail)).rejects.toThrow('no room');
  await pass(suspectTlsApartMs);
  await later;
});
