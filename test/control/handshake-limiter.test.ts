/**
 * Tests handshakes under overload. A handshake that makes progress is never evicted, and a stalled handshake
 * is. Handshakes beyond the limit are told when to retry.
 */

import { duplexPair } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { replaceClock } from '../../runtime/clock.ts';
import { HandshakeLimiter } from '../../runtime/control/handshake/handshake-limiter.ts';
import { Silent } from '../../runtime/control/handshake/silent.ts';
import { Link } from '../../runtime/control/link.ts';
import { pushback } from '../../runtime/core/errors/pushback.ts';
import type { RpcError } from '../../runtime/core/errors/rpc-error.ts';
import {
  handshakeGraceMs,
  handshakeQueueFactor,
  handshakeStallMs,
  handshakeWaitMs,
  handshakeYieldMs,
  retryAfterMsMax,
} from '../../runtime/limits.ts';
import { turn } from '../outcomes.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  replaceClock(() => performance.now());
});
afterEach(() => {
  replaceClock(undefined);
  vi.useRealTimers();
});

/** Makes a HandshakeLimiter for numbers. The handshakes in `stalled` count as stalled all the time. */
function places(max: number) {
  const gone: number[] = [];
  const stalled = new Set<number>();
  const steps = new Map<number, number>();
  const ranks = new Map<number, number>();
  const all = new HandshakeLimiter<number>(max, {
    awaitedMs: (one) => (stalled.has(one) ? Number.POSITIVE_INFINITY : 0),
    steps: (one) => steps.get(one) ?? 0,
    rank: (one) => ranks.get(one) ?? 0,
    evict: (one) => {
      gone.push(one);
      all.leave(one);
    },
  });
  const served: number[] = [];
  const pushedOut: number[] = [];
  /** Returns the error that `enter` throws, or undefined. */
  const enter = (one: number): RpcError | undefined => {
    try {
      const turn = all.enter(one);
      if (turn === undefined) served.push(one);
      else
        turn.then(
          () => served.push(one),
          () => pushedOut.push(one),
        );
      return undefined;
    } catch (error) {
      return error as RpcError;
    }
  };
  return { all, gone, stalled, steps, ranks, served, pushedOut, enter };
}

describe('places', () => {
  test('are given in order, as they become free', async () => {
    const { all, gone, served, enter } = places(2);
    for (const one of [1, 2, 3, 4, 5]) enter(one);
    expect(served).toEqual([1, 2]);
    // The queue must skip a handshake that ended while it waited.
    all.leave(3);
    all.leave(1);
    all.leave(2);
    await vi.advanceTimersByTimeAsync(0);
    expect(served).toEqual([1, 2, 4, 5]);
    expect([gone, all.size]).toEqual([[], 2]);
  });

  test('stay with handshakes in progress, however many others wait, and for however long', async () => {
    const { gone, served, enter } = places(2);
    for (let one = 0; one < 10; ++one) enter(one);
    await vi.advanceTimersByTimeAsync(10 * handshakeStallMs);
    expect([gone, served]).toEqual([[], [0, 1]]);
  });

  test('go to others while their peers are silent for a moment, without evicting anyone', async () => {
    const { all, gone, stalled, served, enter } = places(2);
    stalled.add(0).add(1);
    enter(0);
    await vi.advanceTimersByTimeAsync(10);
    enter(1);
    await vi.advanceTimersByTimeAsync(10 * handshakeStallMs);
    enter(2);
    await turn();
    enter(3);
    await turn();
    expect([gone, served]).toEqual([[], [0, 1, 2, 3]]);
    // The next handshake waits until one of these handshakes has also been silent for a moment, or has
    // finished.
    stalled.add(2);
    enter(4);
    await vi.advanceTimersByTimeAsync(handshakeYieldMs - 1);
    await turn();
    expect(served).toHaveLength(4);
    await vi.advanceTimersByTimeAsync(1);
    await turn();
    expect([gone, served]).toEqual([[], [0, 1, 2, 3, 4]]);
    // Handshakes without a slot are still served, and free no slot when they finish.
    expect(enter(0)).toBeUndefined();
    enter(5);
    for (const one of [0, 1, 2]) all.leave(one);
    await turn();
    expect([all.size, served.filter((one) => one === 5)]).toEqual([3, []]);
  });

  /**
   * Makes as many silent peers as may continue without a slot, and one more peer that wants a slot.
   */
  async function overloaded(max: number, steps: (one: number) => number) {
    const all = places(max);
    const count = max * (1 + handshakeQueueFactor);
    for (let one = 0; one < count; ++one) {
      all.stalled.add(one);
      all.steps.set(one, steps(one));
      all.enter(one);
      await vi.advanceTimersByTimeAsync(one < max ? 0 : handshakeYieldMs);
      await turn();
    }
    expect([all.gone, all.served]).toEqual([[], Array.from({ length: count }, (_, one) => one)]);
    return { ...all, count };
  }

  test('evict the longest silent handshake when many others continue, but only after its time', async () => {
    const { gone, stalled, served, enter, count } = await overloaded(1, () => 0);
    enter(count);
    await vi.advanceTimersByTimeAsync(handshakeYieldMs);
    await turn();
    expect([gone, served.at(-1)]).toEqual([[0], count]);
    stalled.add(count);
    enter(count + 1);
    await vi.advanceTimersByTimeAsync(handshakeYieldMs);
    await turn();
    expect([gone, served.at(-1)]).toEqual([[0, 1], count + 1]);
  });

  test('evict the least advanced handshakes, however long others have been silent', async () => {
    const { gone, enter, count } = await overloaded(1, (one) => (one === 3 ? 1 : 2));
    enter(count);
    await vi.advanceTimersByTimeAsync(handshakeYieldMs);
    await turn();
    enter(count + 1);
    await vi.advanceTimersByTimeAsync(handshakeStallMs);
    await turn();
    expect(gone).toEqual([3]);
  });

  test('evict no handshake that has been silent for less than a round trip may take', async () => {
    const { all, gone, stalled, served, enter } = places(1);
    let next = 0;
    // All handshakes arrive at once, so none of them has been silent for long when the last one arrives.
    stalled.add(next);
    enter(next++);
    await vi.advanceTimersByTimeAsync(handshakeYieldMs);
    while (all.size < 1 + handshakeQueueFactor) {
      stalled.add(next);
      enter(next++);
    }
    await vi.advanceTimersByTimeAsync(handshakeYieldMs - 1);
    await turn();
    expect(gone).toEqual([]);
    expect(served.length).toBeLessThan(next);
  });

  test('stay with handshakes whose answers arrived while this side was busy', async () => {
    const { gone, stalled, served, enter } = places(2);
    stalled.add(0).add(1);
    for (const one of [0, 1, 2, 3]) enter(one);
    // All of this happens in one event-loop iteration, so the client has not read the answer when the timer
    // fires.
    vi.advanceTimersByTime(2 * handshakeStallMs);
    stalled.delete(0);
    await turn();
    expect([gone, served]).toEqual([[], [0, 1, 2]]);
  });

  test('go to suspects after the others, but every fourth place goes to one, and only after their time', async () => {
    const { all, ranks, served, enter } = places(1);
    for (let one = 0; one <= 8; ++one) {
      ranks.set(one, one > 4 ? 0 : 3);
      enter(one);
    }
    for (let left = 0; left < 8; ++left) {
      all.leave(served.at(-1)!);
      await turn();
    }
    expect(served).toEqual([0, 5, 6, 7, 1, 8, 2, 3, 4]);
  });

  test('do not become free faster because suspects wait', async () => {
    const { stalled, ranks, served, enter } = places(1);
    stalled.add(0);
    ranks.set(1, 1);
    enter(0);
    enter(1);
    await vi.advanceTimersByTimeAsync(handshakeStallMs - 1);
    await turn();
    expect(served).toEqual([0]);
    await vi.advanceTimersByTimeAsync(1);
    await turn();
    expect(served).toEqual([0, 1]);
  });

  test('have a queue in which suspects make room for others', async () => {
    const { ranks, pushedOut, enter } = places(4);
    let told = 0;
    for (let one = 0; one < 100; ++one) {
      ranks.set(one, 2);
      if (enter(one) !== undefined) ++told;
    }
    expect(told).toBe(100 - 4 - 4 * handshakeQueueFactor);
    // A new handshake waits in the slot of the suspect that has waited for longest.
    expect(enter(100)).toBeUndefined();
    expect(enter(101)).toBeUndefined();
    await turn();
    expect(pushedOut).toEqual([4, 5]);
  });

  test('become free when a handshake that was silent for a moment is evicted for another', () => {
    const { all, gone, stalled, enter } = places(2);
    for (const one of [0, 1]) enter(one);
    stalled.add(1);
    vi.advanceTimersByTime(handshakeYieldMs - 1);
    expect(all.evictSilent(() => true)).toBeUndefined();
    vi.advanceTimersByTime(1);
    expect(all.evictSilent((one) => one === 0)).toBeUndefined();
    expect([all.evictSilent(() => true), gone]).toEqual([1, [1]]);
  });

  test('are few under overload: other clients are told when to retry, one after the other', () => {
    const { enter } = places(4);
    const told: number[] = [];
    for (let one = 0; one < 100; ++one) {
      const error = enter(one);
      if (error !== undefined) told.push(pushback(error) as number);
    }
    expect(told).toHaveLength(100 - 4 - 4 * handshakeQueueFactor);
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect(new Set(told).size).toBeGreaterThan(told.length / 2);
  });

  test('become free soon when clients do not retry at the given time', () => {
    const { all, enter } = places(4);
    const told = (one: number): number => pushback(enter(one)!) as number;
    for (let one = 0; one < 4 + 4 * handshakeQueueFactor; ++one) enter(one);
    const first = told(-1);
    let last = 0;
    for (let one = 1000; one < 11_000; ++one) last = told(one);
    expect(last).toBeGreaterThan(100 * first);
    // All but two of them retry at once, so no time is reserved for them.
    for (let one = 1000; one < 10_998; ++one) all.lapse(0);
    const next = told(-2);
    expect(next).toBeGreaterThanOrEqual(first);
    expect(next).toBeLessThan(2 * first);
    // However many more retry, handshakes that already wait come first.
    for (let i = 0; i < 1000; ++i) all.lapse(0);
    expect(told(-3)).toBeGreaterThanOrEqual(first);
  });

  test('that become free slowly have few waiting handshakes, and none waits for longer than the limit', async () => {
    const { all, served, enter } = places(100);
    let next = 0;
    // One slot becomes free every 20 ms, and a handshake always waits for it.
    const refused: number[] = [];
    for (let round = 0; round < 500; ++round) {
      for (let i = 0; i < 4; ++i) if (enter(next++) !== undefined) refused.push(round);
      await vi.advanceTimersByTimeAsync(20);
      const oldest = served.shift();
      if (oldest !== undefined) all.leave(oldest);
    }
    expect(all.size - 100).toBeLessThanOrEqual(handshakeWaitMs / 20 + 4);
    expect(refused.length).toBeGreaterThan(1000);
  });

  test('are never promised for the far future, however many are requested', () => {
    const { enter } = places(1);
    let latest = 0;
    for (let one = 0; one < 25_000; ++one) {
      const error = enter(one);
      if (error !== undefined) latest = Math.max(latest, pushback(error) as number);
    }
    expect(latest).toBe(retryAfterMsMax);
  });
});

describe('connections that have said nothing', () => {
  test('have time for their first frame, even when many arrive at once', async () => {
    const gone: number[] = [];
    const silent = new Silent<number>(4, (one) => gone.push(one));
    for (let one = 0; one < 20; ++one) silent.add(one);
    await vi.advanceTimersByTimeAsync(handshakeGraceMs - 1);
    expect(gone).toEqual([]);
    for (let one = 10; one < 18; ++one) silent.delete(one);
    await vi.advanceTimersByTimeAsync(1);
    expect(gone).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(silent.size).toBe(4);
  });

  test('are evicted again in a later overload', async () => {
    const gone: number[] = [];
    const silent = new Silent<number>(4, (one) => gone.push(one));
    for (let round = 0; round < 3; ++round) {
      for (let one = 0; one < 6; ++one) silent.add(10 * round + one);
      await vi.advanceTimersByTimeAsync(handshakeGraceMs);
      expect([round, silent.size]).toEqual([round, 4]);
      expect(gone.splice(0)).toHaveLength(round === 0 ? 2 : 6);
    }
  });

  test('have a limit: beyond it the oldest is evicted at once', () => {
    const gone: number[] = [];
    const silent = new Silent<number>(4, (one) => gone.push(one));
    for (let one = 0; one < 4 * handshakeQueueFactor + 3; ++one) silent.add(one);
    expect(gone).toEqual([0, 1, 2]);
  });
});

describe('a connection in its handshake', () => {
  test('has the time of the round trips of its next message, and each step counts', async () => {
    const [near, far] = duplexPair();
    const link = new Link(near);
    expect([link.steps, link.awaitedMs]).toEqual([0, 0]);
    const received = link.receive(2);
    vi.advanceTimersByTime(600);
    expect(link.awaitedMs).toBe(300);
    // The client's connection for data has arrived, so the rest of the handshake is one round trip.
    link.progressed();
    vi.advanceTimersByTime(200);
    expect([link.steps, link.awaitedMs]).toEqual([1, 200]);
    link.close('over');
    await expect(received).rejects.toThrow('over');
    far.destroy();
  });
});
