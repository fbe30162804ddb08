/**
 * Tests the rules for repeating calls: which calls are repeated, how often, and what happens to the answers
 * of the other attempts. The test covers the rules alone, without a channel.
 */
import { Metadata, RpcError, Status, type StatusCode } from 'rdma-rpc';
import { expect, test } from 'vitest';
import { hedgingPolicy, retryPolicy } from '../../runtime/client/call/repeat.ts';
import { hedged } from '../../runtime/client/connections/hedging.ts';
import { Pauses } from '../../runtime/client/connections/pauses.ts';
import { mayRepeat, type Repeatable } from '../../runtime/client/connections/retry.ts';
import { RetryBudget } from '../../runtime/client/connections/retry-budget.ts';
import { pushback } from '../../runtime/core/errors/pushback.ts';
import { BlockLease, leaseOf, setLease } from '../../runtime/core/lease.ts';
import { FakeNative } from '../runtime/fake-native.ts';
import { until } from './bed.ts';

test('a call that may have been sent is made again only when it is idempotent', () => {
  const call = { idempotent: false, endMs: 0, signal: undefined, attempt: () => Promise.resolve() };
  const error = (processed: 'no' | 'maybe' | 'yes') => new RpcError(Status.UNAVAILABLE, '', { processed });
  const may = (idempotent: boolean) =>
    (['no', 'maybe', 'yes'] as const).map((processed) =>
      mayRepeat({ ...call, idempotent }, [Status.UNAVAILABLE], error(processed)),
    );
  expect(may(false)).toEqual([true, false, false]);
  expect(may(true)).toEqual([true, true, true]);
});

test('push-back is a time in ms, never, or absent', () => {
  const error = (value?: string) =>
    new RpcError(Status.UNAVAILABLE, '', {
      trailer: value === undefined ? undefined : new Metadata({ 'retry-pushback-ms': value }),
    });
  expect(
    [undefined, '0', '1500', '-1', '', '1e3', '9999999999'].map((value) => pushback(error(value))),
  ).toEqual([undefined, 0, 1500, 'never', 'never', 'never', 'never']);
});

test('a policy is read once, and an undefined value means the default', () => {
  const policy = { attemptsMax: 4, backoffMs: 50, backoffMaxMs: 1000, codes: [Status.ABORTED] };
  const counts = [0, 0];
  /** Returns an object with a getter whose first value alone can be used. */
  const each = (place: number, value: number) => ({
    get: () => (++counts[place]! === 1 ? value : Number.NaN),
    enumerable: true,
  });
  const codes = Object.defineProperty([], 0, each(0, Status.ABORTED));
  const once = Object.defineProperty({ backoffMs: undefined, codes }, 'attemptsMax', each(1, 4));
  expect(retryPolicy('a/B', once)).toEqual(policy);
  expect(counts).toEqual([1, 1]);
  // A list that the application continues to use is copied.
  const list: StatusCode[] = [Status.ABORTED];
  const kept = hedgingPolicy('a/B', { delayMs: 5, attemptsMax: undefined, codes: list });
  list.push(Status.INTERNAL);
  expect(kept).toEqual({ attemptsMax: 2, delayMs: 5, codes: [Status.ABORTED] });
});

test('the budget never exceeds its initial value', () => {
  const budget = new RetryBudget();
  for (let i = 0; i < 1000; ++i) budget.succeeded();
  let failures = 0;
  for (; budget.allows; ++failures) budget.failed();
  expect(failures).toBe(5);
});

test('large answers of losing attempts are released, and the answer of the winner is not', async () => {
  const native = new FakeNative();
  const settle: ((response: object) => void)[] = [];
  const call: Repeatable = {
    idempotent: true,
    endMs: Number.POSITIVE_INFINITY,
    signal: undefined,
    attempt: () => new Promise((resolve) => settle.push(resolve)),
  };
  const answer = hedged(
    call,
    { delayMs: 0, attemptsMax: 3, codes: [] },
    { budget: new RetryBudget(), pauses: new Pauses() },
  );
  await until(() => settle.length === 3);
  const responses = settle.map((resolve) => {
    const block = native.allocBlock(100);
    const response = {};
    setLease(response, new BlockLease(native as never, block, native.blockBuffer(block), 0, 100));
    resolve(response);
    return response;
  });
  expect(await answer).toBe(responses[0]);
  expect(native.blocks.size).toBe(1);
  expect(leaseOf(responses[0]!)?.released).toBe(false);
});
