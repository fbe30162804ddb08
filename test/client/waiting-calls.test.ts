/**
 * Tests the queue of calls that wait for a connection or a slot, while the call at its head is being started.
 */
import { describe, expect, test } from 'vitest';
import { deadlines } from '../../runtime/boundary/time/deadlines.ts';
import { WaitingCall, WaitingCalls } from '../../runtime/client/queue/waiting-calls.ts';
import { CallExtras } from '../../runtime/client/session/call-extras.ts';
import { echo } from './client-bed.ts';

const nothing = () => undefined;

test('a call that starts the head of the queue and returns to the queue does not start it again', () => {
  const queue = new WaitingCalls();
  for (let number = 0; number < 3; ++number) {
    queue.push(new WaitingCall(queue, echo, number, 0, undefined, nothing));
  }
  const started: unknown[] = [];
  const start = ({ request }: WaitingCall): boolean => {
    started.push(request);
    // A connection is lost at this moment, while another connection exists.
    queue.startAll(start);
    return started.length < 3;
  };
  queue.startAll(start);
  expect(started).toEqual([0, 1, 2]);
  expect(queue.size).toBe(1);
});

test('a cancelled call leaves the queue, and the others stay', async () => {
  const queue = new WaitingCalls();
  const outcomes: Promise<unknown>[] = [];
  const controllers = [0, 1, 2, 3].map((number) => {
    const controller = new AbortController();
    const extras = new CallExtras({ signal: controller.signal }, undefined);
    const settle = (outcome: unknown) => outcomes.push(Promise.resolve(outcome));
    queue.push(new WaitingCall(queue, echo, number, 0, extras, settle));
    return controller;
  });
  // Aborts a call from the middle, then the last and the first.
  for (const number of [1, 3, 0]) controllers[number]!.abort();
  expect((await Promise.allSettled(outcomes)).map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
  expect(queue.size).toBe(1);
  const started: unknown[] = [];
  queue.startAll(({ request }) => started.push(request) > 0);
  expect(started).toEqual([2]);
  expect([queue.size, queue.head]).toEqual([0, undefined]);
});

describe('deadlines of calls that wait', () => {
  const waiting = (...afterMs: number[]) => {
    const queue = new WaitingCalls();
    const timersBefore = deadlines.count;
    const startMs = deadlines.now;
    const failed: number[] = [];
    afterMs.forEach((ms, number) => {
      const settle = (outcome: unknown) => {
        failed.push(number);
        Promise.resolve(outcome).catch(nothing);
      };
      queue.push(new WaitingCall(queue, echo, number, startMs + ms, undefined, settle));
    });
    return { queue, startMs, failed, timers: () => deadlines.count - timersBefore };
  };

  test('share a timer, and each ends at its own time', () => {
    const { queue, startMs, failed, timers } = waiting(300, 100, 5000, 100);
    expect(timers()).toBe(1);
    deadlines.run(startMs + 150);
    expect([failed, queue.size, timers()]).toEqual([[1, 3], 2, 1]);
    deadlines.run(startMs + 350);
    expect(failed).toEqual([1, 3, 0]);
    deadlines.run(startMs + 5050);
    expect([failed, queue.size, timers()]).toEqual([[1, 3, 0, 2], 0, 0]);
  });

  test('when thousands are in order, not all are checked for each one that passes', () => {
    const { queue, startMs, failed } = waiting(...Array.from({ length: 3000 }, (_, i) => 100 + 10 * i));
    let looks = 0;
    for (let call = queue.head; call !== undefined; call = call.next as WaitingCall | undefined) {
      const { deadlineMs } = call;
      Object.defineProperty(call, 'deadlineMs', { get: () => ++looks && deadlineMs });
    }
    for (let ms = 150; ms <= 1150; ms += 10) deadlines.run(startMs + ms);
    expect(failed.length).toBe(106);
    expect(looks).toBeLessThan(500);
    queue.failAll(() => new Error('closed'));
  });

  test('a turn that takes long leaves them in order only if they are', () => {
    const { queue, startMs, failed } = waiting(100);
    deadlines.endTurn(startMs + 50);
    const settle = (outcome: unknown) => {
      failed.push(1);
      Promise.resolve(outcome).catch(nothing);
    };
    // This call ends before the first call, whose deadline has moved to 150.
    queue.push(new WaitingCall(queue, echo, 1, startMs + 110, undefined, settle));
    deadlines.run(startMs + 135);
    expect(failed).toEqual([1]);
    deadlines.run(startMs + 200);
    expect(failed).toEqual([1, 0]);
  });

  test('of calls that have been sent have no effect', () => {
    const { queue, startMs, failed } = waiting(100, 200);
    queue.startAll(({ request }) => request === 0);
    deadlines.run(startMs + 150);
    expect([failed, queue.size]).toEqual([[], 1]);
    deadlines.run(startMs + 250);
    expect(failed).toEqual([1]);
  });

  test('a turn that takes long does not count', () => {
    const { queue, startMs, failed } = waiting(100);
    const late = waiting(5000);
    deadlines.endTurn(startMs + 1000);
    deadlines.run(startMs + 1050);
    expect([failed, queue.size]).toEqual([[], 1]);
    deadlines.run(startMs + 1150);
    expect([failed, late.failed]).toEqual([[0], []]);
    // This call ends together with the first call, which was in the queue before it.
    late.queue.failAll(() => new Error('closed'));
    expect(late.timers() + 1).toBe(0);
  });
});
