/**
 * Handshakes under a crowd: who goes on is sent away for nobody, who keeps others waiting is, and who is too
 * many is told when to come again.
 */

import { duplexPair } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { replaceClock } from '../../runtime/clock.ts';
import { Places } from '../../runtime/control/handshake/places.ts';
import { Silent } from '../../runtime/control/handshake/silent.ts';
import { Link } from '../../runtime/control/link.ts';
import { pushback } from '../../runtime/core/errors/pushback.ts';
import type { RpcError } from '../../runtime/core/errors/rpc-error.ts';
import {
  comeAgainMsMax,
  handshakeGraceMs,
  handshakeStallMs,
  handshakesCrowd,
  handshakeWaitMs,
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

/** Places for numbers; those in `stalled` are waited for all the time. */
function places(max: number) {
  const gone: number[] = [];
  const stalled = new Set<number>();
  const steps = new Map<number, number>();
  const all = new Places<number>(max, {
    awaitedMs: (one) => (stalled.has(one) ? Number.POSITIVE_INFINITY : 0),
    steps: (one) => steps.get(one) ?? 0,
    sendAway: (one) => {
      gone.push(one);
      all.leave(one);
    },
  });
  const served: number[] = [];
  /** What `enter` throws, or nothing. */
  const enter = (one: number): RpcError | undefined => {
    try {
      const turn = all.enter(one);
      if (turn === undefined) served.push(one);
      else turn.then(() => served.push(one));
      return undefined;
    } catch (error) {
      return error as RpcError;
    }
  };
  return { all, gone, stalled, steps, served, enter };
}

describe('places', () => {
  test('are given in order, as they come free', async () => {
    const { all, gone, served, enter } = places(2);
    for (const one of [1, 2, 3, 4, 5]) enter(one);
    expect(served).toEqual([1, 2]);
    // One that has gone while it waited is passed over.
    all.leave(3);
    all.leave(1);
    all.leave(2);
    await vi.advanceTimersByTimeAsync(0);
    expect(served).toEqual([1, 2, 4, 5]);
    expect([gone, all.size]).toEqual([[], 2]);
  });

  test('stay with those who are at work, however many wait and however long', async () => {
    const { gone, served, enter } = places(2);
    for (let one = 0; one < 10; ++one) enter(one);
    await vi.advanceTimersByTimeAsync(10 * handshakeStallMs);
    expect([gone, served]).toEqual([[], [0, 1]]);
  });

  test('are taken from those who are waited for in vain, the longest first, and after their time only', async () => {
    const { gone, stalled, served, enter } = places(2);
    stalled.add(0).add(1);
    enter(0);
    await vi.advanceTimersByTimeAsync(10);
    enter(1);
    await vi.advanceTimersByTimeAsync(10 * handshakeStallMs);
    // Nobody has needed their places.
    expect(gone).toEqual([]);
    stalled.add(2);
    enter(2);
    await turn();
    expect(gone).toEqual([0]);
    // The one that has just come has its time, too, however long it has been waited for before.
    enter(3);
    await turn();
    expect(gone).toEqual([0, 1]);
    enter(4);
    await vi.advanceTimersByTimeAsync(handshakeStallMs - 1);
    await turn();
    expect(gone).toEqual([0, 1]);
    await vi.advanceTimersByTimeAsync(1);
    await turn();
    expect(gone).toEqual([0, 1, 2]);
    expect(served).toEqual([0, 1, 2, 3, 4]);
  });

  test('are taken from those who have got least far, however long others have been waited for', async () => {
    const { gone, stalled, steps, enter } = places(4);
    for (const one of [0, 1, 2, 3]) {
      stalled.add(one);
      enter(one);
      await vi.advanceTimersByTimeAsync(10);
    }
    steps.set(0, 3).set(1, 2).set(2, 1).set(3, 1);
    await vi.advanceTimersByTimeAsync(handshakeStallMs);
    for (const one of [4, 5, 6, 7]) {
      enter(one);
      await turn();
    }
    expect(gone).toEqual([2, 3, 1, 0]);
  });

  test('are taken from those who have got far, too, when nobody else has stalled', async () => {
    const { gone, stalled, steps, enter } = places(2);
    enter(0);
    stalled.add(0);
    steps.set(0, 9);
    await vi.advanceTimersByTimeAsync(handshakeStallMs);
    // One who has come only now has got less far, and has its time all the same.
    stalled.add(1);
    enter(1);
    enter(2);
    await turn();
    expect(gone).toEqual([0]);
  });

  test('stay with those whose answers have come while this side was at work', async () => {
    const { gone, stalled, served, enter } = places(2);
    stalled.add(0).add(1);
    for (const one of [0, 1, 2]) enter(one);
    // All of this in one turn: neither answer has been read when the timer fires.
    vi.advanceTimersByTime(2 * handshakeStallMs);
    stalled.delete(0);
    await turn();
    expect([gone, served]).toEqual([[1], [0, 1, 2]]);
    stalled.delete(2);
    enter(3);
    vi.advanceTimersByTime(2 * handshakeStallMs);
    await turn();
    expect(gone).toEqual([1]);
  });

  test('of a crowd are few: the rest is told when to come again, one after the other', () => {
    const { enter } = places(4);
    const told: number[] = [];
    for (let one = 0; one < 100; ++one) {
      const error = enter(one);
      if (error !== undefined) told.push(pushback(error) as number);
    }
    expect(told).toHaveLength(100 - 4 - 4 * handshakesCrowd);
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect(new Set(told).size).toBeGreaterThan(told.length / 2);
  });

  test('that come free slowly are waited for by few, and by nobody for longer than that', async () => {
    const { all, served, enter } = places(100);
    let next = 0;
    // One place in 20 ms, and always somebody who wants it.
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

  test('are never promised for the far future, whoever asks for how many', () => {
    const { enter } = places(1);
    let latest = 0;
    for (let one = 0; one < 25_000; ++one) {
      const error = enter(one);
      if (error !== undefined) latest = Math.max(latest, pushback(error) as number);
    }
    expect(latest).toBe(comeAgainMsMax);
  });
});

describe('connections that have said nothing', () => {
  test('have time for their first words, even when many come at once', async () => {
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

  test('are sent away the second time, too, when a crowd comes later', async () => {
    const gone: number[] = [];
    const silent = new Silent<number>(4, (one) => gone.push(one));
    for (let round = 0; round < 3; ++round) {
      for (let one = 0; one < 6; ++one) silent.add(10 * round + one);
      await vi.advanceTimersByTimeAsync(handshakeGraceMs);
      expect([round, silent.size]).toEqual([round, 4]);
      expect(gone.splice(0)).toHaveLength(round === 0 ? 2 : 6);
    }
  });

  test('are never more than a crowd: then the oldest goes at once', () => {
    const gone: number[] = [];
    const silent = new Silent<number>(4, (one) => gone.push(one));
    for (let one = 0; one < 4 * handshakesCrowd + 3; ++one) silent.add(one);
    expect(gone).toEqual([0, 1, 2]);
  });
});

describe('a connection in its handshake', () => {
  test('is waited for by the round trips of its next message, and counts each step', async () => {
    const [near, far] = duplexPair();
    const link = new Link(near);
    expect([link.steps, link.awaitedMs]).toEqual([0, 0]);
    const received = link.receive(2);
    vi.advanceTimersByTime(600);
    expect(link.awaitedMs).toBe(300);
    // Its connection for data has come: the rest is one round trip.
    link.progressed();
    vi.advanceTimersByTime(200);
    expect([link.steps, link.awaitedMs]).toEqual([1, 200]);
    link.close('over');
    await expect(received).rejects.toThrow('over');
    far.destroy();
  });
});
