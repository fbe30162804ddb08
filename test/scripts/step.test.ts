/** Tests the conditions under which a step of the build runs again. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

interface Step {
  name: string;
  title: string;
  inputs: string[];
  outputs: string[];
  ignore?: string[];
  action: () => Promise<void>;
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const script = (name: string) => import(new URL(`../../scripts/${name}`, import.meta.url).href);
const { step } = (await script('step.mjs')) as { step: (step: Step) => Promise<boolean> };

describe('a step', () => {
  let folder = '';
  let runs = 0;
  const path = (name: string) => join(folder, name);
  const write = (name: string, text: string) => writeFileSync(path(name), text);
  const run = (change: Partial<Step> = {}) =>
    step({
      name: basename(folder),
      title: 'a step',
      inputs: [relative(root, path('input'))],
      outputs: [relative(root, path('output'))],
      action: async () => {
        runs += 1;
        write('output', '');
      },
      ...change,
    });

  beforeEach(() => {
    vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    mkdirSync(join(root, 'build'), { recursive: true });
    folder = mkdtempSync(join(root, 'build', 'step-test-'));
    mkdirSync(path('input'));
    write('input/a', '1');
    runs = 0;
  });

  afterEach(() => {
    vi.restoreAllMocks();
    rmSync(join(root, 'build/.stamps', basename(folder)), { force: true });
    rmSync(folder, { recursive: true });
  });

  test('prints a sign of progress every ten seconds, in a pipe too', async () => {
    vi.useFakeTimers();
    try {
      const ran = run({
        title: 'a long step',
        action: () => new Promise((resolve) => setTimeout(resolve, 25_000)),
      });
      await vi.advanceTimersByTimeAsync(25_000);
      await ran.catch(() => undefined);
    } finally {
      vi.useRealTimers();
    }
    const lines = vi.mocked(process.stdout.write).mock.calls.map(([text]) => String(text));
    expect(lines.filter((line) => line.startsWith('  a long step …')).length).toBeGreaterThanOrEqual(3);
  });

  test('runs once while nothing changes', async () => {
    expect(await run()).toBe(true);
    expect(await run()).toBe(false);
    write('input/a', '1');
    expect(await run()).toBe(false);
    expect(runs).toBe(1);
  });

  test.each([
    ['a file changes', () => write('input/a', '2')],
    ['a file is added', () => write('input/b', '')],
    ['a file is removed', () => rmSync(path('input/a'))],
    ['its output is missing', () => rmSync(path('output'))],
  ])('runs again when %s', async (_, change) => {
    await run();
    change();
    expect(await run()).toBe(true);
    expect(await run()).toBe(false);
  });

  test('does not read ignored files', async () => {
    const ignore = [relative(root, path('input/b'))];
    await run({ ignore });
    write('input/b', '');
    expect(await run({ ignore })).toBe(false);
  });

  test('runs again after a failure, even with unchanged inputs', async () => {
    await run();
    write('input/a', '2');
    const action = () => Promise.reject(new Error('broken'));
    await expect(run({ action })).rejects.toThrow('broken');
    write('input/a', '1');
    expect(await run()).toBe(true);
  });
});
