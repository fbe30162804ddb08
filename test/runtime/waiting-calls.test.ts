/** The queue of calls that wait for a connection or a slot, while the call at its head is being started. */
import { expect, test } from 'vitest';
import { CallExtras } from '../../runtime/client/call-extras.ts';
import { WaitingCall, WaitingCalls } from '../../runtime/client/queue/waiting-calls.ts';
import { echo } from './client-bed.ts';

const nothing = () => undefined;

test('what starts the head and comes back to the queue does not start it again', () => {
  const queue = new WaitingCalls();
  for (let number = 0; number < 3; ++number) {
    const call = { method: echo, request: number, deadlineMs: 0, extras: undefined };
    queue.push(new WaitingCall(queue, { ...call, resolve: nothing, reject: nothing }));
  }
  const started: unknown[] = [];
  const start = ({ request }: WaitingCall): boolean => {
    started.push(request);
    // As a connection that is lost meanwhile does, when there is another one.
    queue.startAll(start);
    return started.length < 3;
  };
  queue.startAll(start);
  expect(started).toEqual([0, 1, 2]);
  expect(queue.size).toBe(1);
});

test('a call that is given up leaves the queue, and the others stay', async () => {
  const queue = new WaitingCalls();
  const outcomes: Promise<unknown>[] = [];
  const controllers = [0, 1, 2, 3].map((number) => {
    const controller = new AbortController();
    const extras = new CallExtras({ signal: controller.signal }, undefined);
    const settle = (outcome: unknown) => outcomes.push(Promise.resolve(outcome));
    const call = { method: echo, request: number, deadlineMs: 0, extras };
    queue.push(new WaitingCall(queue, { ...call, resolve: settle, reject: nothing }));
    return controller;
  });
  // One from the middle, the last and the first.
  for (const number of [1, 3, 0]) controllers[number]!.abort();
  expect((await Promise.allSettled(outcomes)).map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
  expect(queue.size).toBe(1);
  const started: unknown[] = [];
  queue.startAll(({ request }) => started.push(request) > 0);
  expect(started).toEqual([2]);
  expect([queue.size, queue.head]).toEqual([0, undefined]);
});
