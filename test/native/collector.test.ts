/**
 * Tests that V8's function that collects garbage is found although other threads look for it at the same
 * time, and that it collects the objects that its argument says.
 */
import { runInNewContext } from 'node:vm';
import { afterEach, expect, test, vi } from 'vitest';
import { turn } from '../outcomes.ts';

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

/** Returns the only reference to an object that V8 has moved to its old objects. */
async function oldObject(young: () => void): Promise<WeakRef<object>> {
  const object = {};
  const reference = new WeakRef(object);
  // An object that has survived two collections of young objects is old.
  young();
  young();
  // A WeakRef keeps its object until the end of the current job.
  await turn();
  return reference;
}

test('all: old objects are collected, too', async () => {
  const { collector } = await import('../../runtime/native/collector.ts');
  const collect = collector()!;
  const young = (): void => collect('young');
  const dropped = await oldObject(young);
  young();
  await turn();
  // Shows that this object is old.
  expect(dropped.deref()).toBeDefined();
  await turn();
  collect('all');
  expect(dropped.deref()).toBeUndefined();
});

test('an engine that never has it costs no more than a few attempts', async () => {
  loseTheFlag(Number.POSITIVE_INFINITY);
  const { collector } = await import('../../runtime/native/collector.ts');
  expect(collector()).toBeUndefined();
});
