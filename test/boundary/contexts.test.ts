/**
 * The tests check which context is chosen when the address of the connection is part of the choice, and when
 * that context opens and closes.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { contextLingerMs } from '../../runtime/limits.ts';
import { EvKind, type VerbsOptions } from '../../runtime/native/native.ts';
import { FakeNative } from '../runtime/fake-native.ts';

/** The addresses of each device; the first is the address that the device uses by default. */
const devices: Record<string, string[]> = { rxe0: ['10.0.0.1', '10.0.1.1'] };
let opened: (FakeNative & { path: string })[] = [];

vi.mock('../../runtime/native/native.ts', async (original) => ({
  ...(await original<object>()),
  loadNative: () => ({
    createContext: ({ verbs }: { verbs: VerbsOptions }) => {
      const own = devices[verbs.device ?? 'rxe0']!;
      const path = own.find((address) => address === verbs.address) ?? own[0]!;
      const native = Object.assign(new FakeNative(), { path });
      opened.push(native);
      return native;
    },
  }),
}));

const { acquireContext, acquireOwnContext, openContexts, releaseContext, setContextOptions } = await import(
  '../../runtime/boundary/contexts.ts'
);
const device = 'rxe0';
const of = (address?: string) =>
  acquireContext({ fabric: 'verbs', verbs: address === undefined ? { device } : { device, address } });

const open = () => opened.filter(({ closed }) => !closed).map(({ path }) => path);

beforeEach(() => {
  vi.useFakeTimers();
  opened = [];
});
afterEach(() => {
  vi.advanceTimersByTime(contextLingerMs);
  expect([open(), openContexts()]).toEqual([[], []]);
  vi.useRealTimers();
});

test('an additional address of the device has its own context; the default and unknown addresses share one', () => {
  const contexts = [
    of(),
    of('10.0.1.1'),
    of('10.0.0.1'),
    of('192.168.7.7'),
    of('192.168.7.7'),
    of('10.0.1.1'),
  ];
  const [any, second, first, foreign, again, secondAgain] = contexts;
  expect(second).not.toBe(any);
  expect(first).toBe(any);
  expect(foreign).toBe(any);
  expect(again).toBe(any);
  expect(secondAgain).toBe(second);
  expect(open()).toEqual(['10.0.0.1', '10.0.1.1']);
  expect(opened).toHaveLength(4);
  for (const context of contexts) releaseContext(context);
  vi.advanceTimersByTime(contextLingerMs);
  expect(open()).toEqual([]);
  const anew = of('192.168.7.7');
  expect(open()).toHaveLength(1);
  releaseContext(anew);
});

test('the context of one session is not shared', () => {
  const own = acquireOwnContext({ fabric: 'verbs', verbs: { device } }, 64);
  const shared = of('192.168.7.7');
  expect(shared).not.toBe(own);
  releaseContext(own);
  releaseContext(shared);
});

describe('an unused context', () => {
  test('stays open for a while after its last use, and then closes', () => {
    const first = of();
    releaseContext(first);
    vi.advanceTimersByTime(contextLingerMs - 1);
    expect(of()).toBe(first);
    vi.advanceTimersByTime(contextLingerMs);
    expect(open()).toHaveLength(1);
    releaseContext(first);
    vi.advanceTimersByTime(contextLingerMs - 1);
    expect(open()).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(open()).toEqual([]);
    expect(of()).not.toBe(first);
    for (const context of openContexts()) releaseContext(context);
  });

  test('makes room for another, and for other options', () => {
    releaseContext(of());
    const other = of('10.0.1.1');
    expect(open()).toEqual(['10.0.1.1']);
    expect(() => setContextOptions({})).toThrow(/comes too late: the context for verbs is open/);
    releaseContext(other);
    setContextOptions({});
    expect(open()).toEqual([]);
  });

  test('is not closed while its events are being handled', () => {
    const context = of();
    releaseContext(context);
    const retry = vi.fn(() => {
      expect(() => setContextOptions({})).toThrow(/comes too late/);
      return false;
    });
    context.waiters.wait('slot', { retry });
    opened[0]!.deliver({ kind: EvKind.slotsFree });
    expect(retry).toHaveReturned();
    expect(open()).toHaveLength(1);
    setContextOptions({});
    expect(open()).toEqual([]);
  });

  test('closes at once when it would poll all the time', () => {
    setContextOptions({ polling: 'busy' });
    releaseContext(of());
    vi.advanceTimersByTime(0);
    expect(open()).toEqual([]);
    setContextOptions({ polling: 'adaptive' });
  });

  test('closes at once when its device was removed, or when it was for one session', () => {
    const context = of();
    context.deviceGone = true;
    releaseContext(context);
    releaseContext(acquireOwnContext({ fabric: 'verbs', verbs: { device } }, 64));
    vi.advanceTimersByTime(0);
    expect(open()).toEqual([]);
  });

  test('keeps its memory while a lease is out', () => {
    const context = of();
    const stats = context.native.stats();
    context.native.stats = () => ({ ...stats, arenaLeasedBlocks: 1 });
    releaseContext(context);
    vi.advanceTimersByTime(10 * contextLingerMs);
    expect(open()).toHaveLength(1);
    expect(() => setContextOptions({})).toThrow(/comes too late/);
    context.native.stats = () => stats;
    setContextOptions({});
    expect(open()).toEqual([]);
  });
});
