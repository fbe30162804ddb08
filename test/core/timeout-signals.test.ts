/** Tests when calls begin to listen to signals of `AbortSignal.timeout()`, on a clock of the test. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

let listenLater: (one: { listenNow(): void }) => void;
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  // The module uses the timers that are set when it is loaded.
  vi.resetModules();
  ({ listenLater } = await import('../../runtime/core/timeout-signals.ts'));
});
afterEach(() => void vi.useRealTimers());

test('after 3 ms all calls that exist by then listen', () => {
  const heard: string[] = [];
  const listen = (name: string): void => listenLater({ listenNow: () => void heard.push(name) });
  listen('first');
  vi.advanceTimersByTime(2);
  listen('second');
  expect([heard, vi.getTimerCount()]).toEqual([[], 1]);
  vi.advanceTimersByTime(1);
  expect([heard, vi.getTimerCount()]).toEqual([['first', 'second'], 0]);
});

test('a signal added while the others begin to listen has its own 3 ms', () => {
  const heard: string[] = [];
  const again = { listenNow: () => void heard.push('again') };
  listenLater({
    listenNow: () => {
      heard.push('first');
      listenLater(again);
    },
  });
  vi.advanceTimersByTime(3);
  expect(heard).toEqual(['first']);
  vi.advanceTimersByTime(2);
  expect(heard).toEqual(['first']);
  vi.advanceTimersByTime(1);
  expect(heard).toEqual(['first', 'again']);
});
