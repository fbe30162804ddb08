/**
 * Tests pauses between attempts to connect while calls wait: how soon a restarted server is noticed, and how
 * often connections are attempted.
 */

import { createClient } from 'rdma-rpc';
import { afterEach, expect, test, vi } from 'vitest';
import { awaitedPause } from '../../runtime/client/connections/awaited-pause.ts';
import { Backoff } from '../../runtime/client/connections/backoff.ts';
import * as connectionLimits from '../../runtime/client/connections/limits.ts';
import { replaceClock } from '../../runtime/clock.ts';
import * as limits from '../../runtime/limits.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Random } from '../states/random.ts';
import { Bed } from './bed.ts';

afterEach(() => {
  replaceClock(undefined);
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test.each<[string, number, number, number, number[], number]>([
  ['a short pause stays as it is', 80, 50, 0.5, [], 80],
  ['a long one is a second at most', 9000, 50, 0, [], 1000],
  ['chance makes it up to half as short', 9000, 50, 1, [], 500],
  ['no shorter than the first pause that the application wants', 9000, 3000, 0, [], 3000],
  ['a deadline gets an attempt shortly before it', 9000, 50, 0, [900], 900 - connectionLimits.lastAttemptMs],
  ['the earliest one that can', 9000, 50, 0, [2000, 800, 950], 800 - connectionLimits.lastAttemptMs],
  [
    'but not at once',
    9000,
    50,
    0,
    [connectionLimits.lastAttemptMs + connectionLimits.attemptGapMs - 1],
    1000,
  ],
  ['nor when it is over', 9000, 50, 0, [-5000, Infinity], 1000],
])('%s', (_, pauseMs, firstMs, random, deadlines, expected) => {
  const nowMs = 70_000;
  const absolute = deadlines.map((ms) => nowMs + ms);
  expect(awaitedPause(pauseMs, firstMs, random, nowMs, absolute)).toBe(expected);
});

/**
 * Returns the times at which a client attempts to connect while its calls wait until `deadlineMs`, on a clock
 * of the test.
 */
function attempts(deadlineMs: number, random: () => number): number[] {
  const backoff = new Backoff(limits.backoffMs.default, limits.backoffMaxMs.default, random, true);
  const times: number[] = [];
  for (let at = 0; at < deadlineMs; ) {
    times.push(at);
    at += awaitedPause(backoff.next(), limits.backoffMs.default, random(), at, [deadlineMs]);
  }
  return times;
}

test('with the 10 s of the guide, each of 1,000 clients asks its server at least once a second, and once shortly before the end', () => {
  const chance = new Random(3);
  const random = (): number => chance.below(2 ** 32) / 2 ** 32;
  const deadlineMs = 10_000;
  for (let client = 0; client < 1000; ++client) {
    const times = attempts(deadlineMs, random);
    const gaps = times.slice(1).map((ms, index) => ms - times[index]!);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(connectionLimits.awaitedPauseMs);
    expect(times.at(-1)).toBeGreaterThanOrEqual(
      deadlineMs - connectionLimits.lastAttemptMs - connectionLimits.attemptGapMs,
    );
    // There are six attempts while the pauses are short, then two per second, and at last one more before the
    // deadline.
    expect(times.length).toBeLessThanOrEqual(28);
  }
});

/**
 * Makes a channel whose attempts have failed so often that its pauses are the longest, with a random factor
 * that leaves them unchanged.
 */
async function longPaused(bed: Bed) {
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  replaceClock(() => performance.now());
  const channel = bed.channel(['a:1'], { backoffMs: 600_000, backoffMaxMs: 600_000 });
  await channel.ready().catch(() => undefined);
  expect(channel.state).toBe('failing');
  return channel;
}

test("a pause that began before any call waited is not made shorter than the application's first pause", async () => {
  const bed = new Bed();
  const channel = await longPaused(bed);
  void channel.ready({ timeoutMs: 60_000 }).catch(() => undefined);
  await vi.advanceTimersByTimeAsync(50_000);
  expect(bed.dialled).toHaveLength(1);
  // This is the last attempt before its deadline.
  await vi.advanceTimersByTimeAsync(10_000 - connectionLimits.lastAttemptMs);
  expect(bed.dialled).toHaveLength(2);
  vi.useRealTimers();
  await bed.close();
});

test.each([
  ['a call', true],
  ['ready() with a time limit', false],
])('%s that comes in the middle of a long pause makes it shorter', async (_, call) => {
  const bed = new Bed();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  replaceClock(() => performance.now());
  const channel = bed.channel(['a:1']);
  for (let i = 0; i < 16; ++i) await channel.ready().catch(() => undefined);
  const before = bed.dialled.length;
  const client = createClient(EchoDefinition, channel);
  const limits = { timeoutMs: 10_000 };
  const waiting = call
    ? client.echo({ number: 1 }, { waitForReady: true, ...limits })
    : channel.ready(limits);
  bed.start('a:1');
  await vi.advanceTimersByTimeAsync(1000);
  expect(bed.dialled).toHaveLength(before + 1);
  vi.useRealTimers();
  await waiting;
  await bed.close();
});
