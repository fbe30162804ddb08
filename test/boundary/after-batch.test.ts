/**
 * Who asked to be told when the events that came together have been handled: once, after all of them,
 * whatever another does.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FabricContext } from '../../runtime/boundary/fabric-context.ts';
import { ChannelQueue, type QueueOwner } from '../../runtime/client/queue/channel-queue.ts';
import { EvKind } from '../../runtime/native/native.ts';
import { FakeNative } from '../runtime/fake-native.ts';

let native: FakeNative;
let context: FabricContext;
let seen: string[];
const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);

/** Hands out `count` events, each of which runs `during`. */
function batch(count: number, during: () => void): void {
  const again = (): void => {
    during();
    context.awaitSlots({ onSlotsFree: again });
  };
  context.awaitSlots({ onSlotsFree: again });
  native.deliver(...Array.from({ length: count }, () => ({ kind: EvKind.slotsFree })));
}

beforeEach(() => {
  native = new FakeNative();
  context = new FabricContext('shm', native);
  seen = [];
});
afterEach(() => {
  expect(context.dispatching).toBe(false);
  warned.mockClear();
});

const waiter = (name: string, then = () => {}) => ({
  onSlotsFree: () => {
    seen.push(name);
    then();
  },
});

test('after the last event of the batch, and of that batch alone', () => {
  const one = waiter('told');
  batch(3, () => {
    seen.push('event');
    if (seen.length === 1) expect(context.afterBatch(one)).toBe(true);
  });
  expect(seen).toEqual(['event', 'event', 'event', 'told']);
  batch(1, () => seen.push('event'));
  expect(seen.slice(4)).not.toContain('told');
});

test('without a batch nobody is told: who asks goes on at once', () => {
  expect(context.afterBatch(waiter('told'))).toBe(false);
  batch(1, () => undefined);
  expect(seen).toEqual([]);
});

test('one that throws costs the others nothing', () => {
  const throws = (): never => {
    throw new Error('a fault of this library');
  };
  batch(1, () => {
    for (const each of [waiter('a'), waiter('b', throws), waiter('c')]) context.afterBatch(each);
  });
  expect(seen).toEqual(['a', 'b', 'c']);
  expect(warned).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({ message: 'a fault of this library' }),
    'RdmaRpcInternalError',
  );
});

test('one that asks again while it is told is told again', () => {
  let times = 0;
  const again = waiter('told', () => {
    if (++times < 3) context.afterBatch(again);
  });
  batch(1, () => context.afterBatch(again));
  expect(seen).toEqual(['told', 'told', 'told']);
});

test('the queue of a channel is looked at once for a batch, however many of its calls end, and at once without one', () => {
  const queue = new ChannelQueue({} as QueueOwner);
  const pumped = vi.spyOn(queue, 'pump').mockImplementation(() => void seen.push('pumped'));
  for (const expected of [1, 2]) {
    batch(5, () => {
      queue.pumpAfter(context);
      expect(pumped).toHaveBeenCalledTimes(expected - 1);
    });
    expect(pumped).toHaveBeenCalledTimes(expected);
    native = new FakeNative();
    context = new FabricContext('shm', native);
  }
  queue.pumpAfter(context);
  queue.pumpAfter(context);
  expect(pumped).toHaveBeenCalledTimes(4);
});
