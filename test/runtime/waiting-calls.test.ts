/** The queue of calls that wait for a connection or a slot, while the call at its head is being started. */
import { expect, test } from 'vitest';
import { WaitingCall, WaitingCalls } from '../../runtime/client/waiting-calls.ts';
import { echo } from './client-bed.ts';

test('what starts the head and comes back to the queue does not start it again', () => {
  const queue = new WaitingCalls();
  for (let number = 0; number < 3; ++number) {
    queue.push(
      new WaitingCall(
        queue,
        echo,
        number,
        0,
        undefined,
        () => undefined,
        () => undefined,
      ),
    );
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
