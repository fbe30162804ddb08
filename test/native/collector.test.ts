/**
 * Tests that V8's function that collects garbage is found although other threads look for it at the same
 * time.
 */
import { runInNewContext } from 'node:vm';
import { afterEach, expect, test, vi } from 'vitest';

const { getBuiltinModule } = process;
const isExposed = (): boolean => runInNewContext("typeof gc === 'function'") as boolean;

afterEach(() => {
  process.getBuiltinModule = getBuiltinModule;
  vi.resetModules();
});

/** Creates the first `times` contexts without the function, as if another thread had taken the flag. */
function loseTheFlag(times: number): void {
  let contexts = 0;
  const vm = {
    ...getBuiltinModule('node:vm'),
    runInNewContext: (code: string): unknown =>
      ++contexts > times ? runInNewContext(code) : runInNewContext(`gc = undefined; ${code}`),
  };
  process.getBuiltinModule = ((name: string) =>
    name === 'node:vm' ? vm : getBuiltinModule(name)) as typeof getBuiltinModule;
}

test.each([0, 1, 5])('after %i contexts without it', async (times) => {
  loseTheFlag(times);
  const { collector } = await import('../../runtime/native/collector.ts');
  const collect = collector();
  expect(collect).toBeTypeOf('function');
  collect?.('young');
  collect?.('all');
  expect(isExposed()).toBe(false);
});

test('an engine that never has it costs no more than a few attempts', async () => {
  loseTheFlag(Number.POSITIVE_INFINITY);
  const { collector } = await import('../../runtime/native/collector.ts');
  expect(collector()).toBeUndefined();
});
