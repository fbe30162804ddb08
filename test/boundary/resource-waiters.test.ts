/**
 * The tests check waiters for a resource of which a context has too little, and waiters for the end of a
 * batch of events. Each waiter is notified once that its resource is free, even if another waiter throws.
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

/** Delivers `count` events, and calls `during` in each. */
function batch(count: number, during: () => void): void {
  const retry = (): boolean => {
    during();
    context.waiters.wait('slot', { retry });
    return false;
  };
  context.waiters.wait('slot', { retry });
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
  retry: () => {
    seen.push(name);
    then();
    return false;
  },
});

test('waiters are notified after the last event of the batch, and only of that batch', () => {
  const one = waiter('told');
  batch(3, () => {
    seen.push('event');
    if (seen.length === 1) expect(context.waiters.wait('turn', one)).toBe(true);
  });
  expect(seen).toEqual(['event', 'event', 'event', 'told']);
  batch(1, () => seen.push('event'));
  expect(seen.slice(4)).not.toContain('told');
});

test('outside a batch no waiter is notified: a caller that asks continues at once', () => {
  expect(context.waiters.wait('turn', waiter('told'))).toBe(false);
  batch(1, () => undefined);
  expect(seen).toEqual([]);
});

test('a waiter that throws does not affect the others, whatever they wait for', () => {
  const throws = (): never => {
    throw new Error('a fault of this library');
  };
  batch(1, () => {
    for (const each of [waiter('a'), waiter('b', throws), waiter('c')]) context.waiters.wait('turn', each);
  });
  expect(seen).toEqual(['a', 'b', 'c']);
  expect(warned).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({ message: 'a fault of this library' }),
    'RdmaRpcInternalError',
  );
  for (const [kind, resource] of [
    [EvKind.slotsFree, 'slot'],
    [EvKind.memoryFree, 'memory'],
  ] as const) {
    seen = [];
    native = new FakeNative();
    context = new FabricContext('shm', native);
    for (const each of [waiter('a', throws), waiter('b'), waiter('c', throws), waiter('d')])
      context.waiters.wait(resource, each);
    native.deliver({ kind });
    expect(seen).toEqual(['a', 'b', 'c', 'd']);
  }
});

test('a waiter for one resource is not notified of another', () => {
  context.waiters.wait('slot', waiter('slot'));
  context.waiters.wait('memory', waiter('memory'));
  context.waiters.wait('registration', waiter('registration'));
  native.deliver({ kind: EvKind.memoryFree });
  expect(seen).toEqual(['memory', 'registration']);
  native.deliver({ kind: EvKind.slotsFree });
  expect(seen).toEqual(['memory', 'registration', 'slot']);
});

test('a waiter that asks again while it is notified is notified again', () => {
  let times = 0;
  const again = waiter('told', () => {
    if (++times < 3) context.waiters.wait('turn', again);
  });
  batch(1, () => context.waiters.wait('turn', again));
  expect(seen).toEqual(['told', 'told', 'told']);
});

test('the queue of a channel is checked once per batch, however many of its calls end, and at once outside of a batch', () => {
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
