/** Tests that the lock makes a second set-up of the same checkout wait. */
import { existsSync, mkdtempSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { until } from '../outcomes.ts';

type Locked = <T>(
  path: string,
  action: () => Promise<T>,
  options?: { readonly onWait?: () => void; readonly staleMs?: number },
) => Promise<T>;
const { locked } = (await import(new URL('../../scripts/lock.mjs', import.meta.url).href)) as {
  locked: Locked;
};
const fresh = (): string => join(mkdtempSync(join(tmpdir(), 'lock-')), 'made', 'lock');

test('the second process waits for the end of the first, and prints that once', async () => {
  const path = fresh();
  const log: string[] = [];
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const first = locked(path, async () => {
    log.push('first begins');
    await ended;
    log.push('first ends');
  });
  const onWait = (): void => void log.push('second waits');
  const second = locked(path, async () => void log.push('second begins'), { onWait });
  await until(() => log.length === 2);
  end();
  await Promise.all([first, second]);
  expect(log).toEqual(['first begins', 'second waits', 'first ends', 'second begins']);
  expect(existsSync(path)).toBe(false);
});

test('an action that throws releases the lock', async () => {
  const path = fresh();
  const fault = new Error('the compiler failed');
  await expect(locked(path, () => Promise.reject(fault))).rejects.toBe(fault);
  expect(await locked(path, async () => 'done')).toBe('done');
});

test('the lock of a process that was killed is taken over', async () => {
  const path = fresh();
  await locked(path, async () => undefined);
  writeFileSync(path, '');
  utimesSync(path, new Date(0), new Date(0));
  expect(await locked(path, async () => 'done')).toBe('done');
});
