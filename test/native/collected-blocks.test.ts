/**
 * Tests blocks of the arena whose ArrayBuffers are collected. The tests check which blocks the collection
 * releases, and that none is released twice.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, expect, test } from 'vitest';
import { Use } from '../../runtime/native/native.ts';
import { Loopback } from './loopback.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

let open: Loopback | undefined;
afterEach(() => open?.native.close());

function loopback(): Loopback {
  open = new Loopback('sim', {}, 0);
  return open;
}

test('a block that the runtime holds by its number is kept without any view, until it is released', async () => {
  const { native } = loopback();
  const block = native.blockOf(native.allocBuffer(5000, Use.request)!);
  for (let i = 0; i < 5; i += 1) {
    collect();
    await turn();
  }
  expect(native.stats().arenaLeasedBlocks).toBe(1);
  expect(native.blockBuffer(block).byteLength).toBeGreaterThanOrEqual(5000);
  native.releaseBlock(block);
  expect(native.stats().arenaLeasedBlocks).toBe(0);
});

test.each([
  ['releaseBlock', Use.application],
  ['takeBlock', Use.application],
  ['discardBlock', Use.application],
  ['releaseBlock', Use.request],
] as const)('the end of a collected buffer takes no reference of the next holder: %s', async (give, use) => {
  const { native } = loopback();
  // The buffer is made and dropped in another function, so that no variable of this function keeps it.
  const lend = (): number => native.blockOf(native.allocBuffer(5000, use)!);
  const block = lend();
  // The buffer is collected at this point, but the engine reports that only in a later iteration.
  collect();
  native[give](block);
  expect(native.allocBlock(5000, use)).toBe(block);
  for (let i = 0; i < 5; i += 1) {
    collect();
    await turn();
  }
  expect(native.stats().arenaLeasedBlocks).toBe(1);
  expect(native.blockBuffer(block).byteLength).toBeGreaterThanOrEqual(5000);
});
