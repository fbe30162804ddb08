/**
 * Tests the place where a message keeps its lease. Only leaseOf sees the lease, so the application's
 * operations on the message are not affected by it.
 */
import { describe, expect, test } from 'vitest';
import { BlockLease, leaseOf, setLease } from '../../runtime/core/lease.ts';
import type { NativeContext } from '../../runtime/native/native.ts';

function lease(): BlockLease {
  return new BlockLease({} as NativeContext, 1, new ArrayBuffer(8), 0, 8);
}

describe('the lease of a message', () => {
  test.each<[string, () => object]>([
    ['an object', () => ({ id: 1 })],
    ['a frozen one', () => Object.freeze({ id: 1 })],
    ['one without a prototype', () => Object.create(null) as object],
    ['bytes', () => new Uint8Array(4)],
    ['an array', () => [1, 2]],
    ['a proxy', () => new Proxy({ id: 1 }, {})],
  ])('is found by the message: %s', (_, make) => {
    const [message, other, held] = [make(), make(), lease()];
    setLease(message, held);
    expect(leaseOf(message)).toBe(held);
    expect(leaseOf(other)).toBe(undefined);
  });

  test('is the last one that was set', () => {
    const [message, second] = [{}, lease()];
    setLease(message, lease());
    setLease(message, second);
    expect(leaseOf(message)).toBe(second);
  });

  test('is no property, and no part of a copy', () => {
    const message = { id: 1 };
    setLease(message, lease());
    expect(Reflect.ownKeys(message)).toEqual(['id']);
    expect(message).toStrictEqual({ id: 1 });
    expect(structuredClone(message)).toStrictEqual({ id: 1 });
    expect(leaseOf({ ...message })).toBe(undefined);
  });

  test.each([[undefined], [null], [1], ['text']])('a value that is not a message has none: %s', (value) => {
    expect(leaseOf(value as unknown as object)).toBe(undefined);
  });
});
