/**
 * Tests a resolver that pushes lists which cannot be used. It is asked again after the usual pauses, even if
 * it pushes more often.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Resolution } from '../../runtime/client/connections/resolution.ts';
import type { Resolver } from '../../runtime/client/connections/resolver.ts';
import type { Server } from '../../runtime/client/connections/servers.ts';

type Push = Parameters<NonNullable<Resolver['watch']>>[0];

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => vi.useRealTimers());

const backoffMs = 1_000;
const backoffMaxMs = 8_000;

function start(resolve: () => Promise<readonly string[]>) {
  let push: Push = () => undefined;
  const asked = vi.fn(resolve);
  const lists: (readonly Server[])[] = [];
  const resolver: Resolver = {
    resolve: asked,
    watch: (onChange) => {
      push = onChange;
      return () => undefined;
    },
  };
  const resolution = new Resolution(
    'a test',
    resolver,
    { connectTimeoutMs: 60_000, backoffMs, backoffMaxMs, resolveMinMs: 0, subset: { size: 0 } },
    {
      wanted: true,
      inUse: false,
      onServers: (servers) => lists.push(servers),
      onResolutionChange: () => undefined,
    },
  );
  return { resolution, asked, lists, push: (...given: Parameters<Push>) => push(...given) };
}

/** Lets the answer of the resolver arrive. */
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 10; ++turn) await undefined;
};

test('bad lists that come faster than the pause do not keep the resolver from being asked', async () => {
  const { resolution, asked, lists, push } = start(async () => ['a:1']);
  push([]);
  expect(resolution.error?.message).toContain('the resolver gave no address');
  for (let passedMs = 0; passedMs < 2 * backoffMs; passedMs += 100) {
    vi.advanceTimersByTime(100);
    if (asked.mock.calls.length === 0) push([]);
  }
  await settled();
  expect([asked.mock.calls.length, lists.length, resolution.error]).toEqual([1, 1, undefined]);
  resolution.close();
});

test('the pauses grow with the failures of the resolver, not with each bad list', async () => {
  const { resolution, asked, push } = start(() => Promise.reject(new Error('the registry is away')));
  resolution.refresh();
  await settled();
  const pauses: number[] = [];
  for (let passedMs = 0, calls = asked.mock.calls.length; pauses.length < 4; passedMs += 100) {
    push([]);
    vi.advanceTimersByTime(100);
    await settled();
    if (asked.mock.calls.length === calls) continue;
    calls = asked.mock.calls.length;
    pauses.push(passedMs);
  }
  // Pauses are 1 s, and grow by 1.6 with a jitter of a fifth. Each is seen 100 ms late at most.
  const lengths = pauses.map((endMs, at) => endMs - (pauses[at - 1] ?? 0));
  for (const [at, length] of lengths.entries()) {
    const meanMs = Math.min(backoffMaxMs, backoffMs * 1.6 ** at);
    expect(length).toBeGreaterThanOrEqual(0.8 * meanMs - 100);
    expect(length).toBeLessThanOrEqual(1.2 * meanMs + 200);
  }
  resolution.close();
});
