/**
 * Once values share chunks, a process keeps the memory that it has freed, so that the system does not have to
 * provide the pages again.
 */
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

/**
 * Counts the page faults of two rounds of buffers of 32 MiB each. The second round begins after the buffers
 * of the first have been collected.
 */
const rounds = `
  const native = require(process.argv[1]);
  native.keepFreedMemory();
  const round = () => {
    const before = process.resourceUsage().minorPageFault;
    for (let i = 0; i < 256; ++i) Buffer.allocUnsafeSlow(128 * 1024 + 64).fill(1);
    return process.resourceUsage().minorPageFault - before;
  };
  const collected = async () => {
    for (let i = 0; i < 3; ++i) {
      global.gc();
      await new Promise((next) => setTimeout(next, 20));
    }
  };
  (async () => {
    const first = round();
    await collected();
    console.log(JSON.stringify([first, round()]));
  })();`;

const musl =
  (process.report.getReport() as { header: { glibcVersionRuntime?: string } }).header.glibcVersionRuntime ===
  undefined;
const sanitized = process.env.LD_PRELOAD?.includes('san') === true;

test.skipIf(musl || sanitized)('a second round of values reuses the pages of the first', () => {
  const addon =
    process.env.RDMA_RPC_ADDON ?? new URL('../../build/Release/rdma_rpc.node', import.meta.url).pathname;
  const { stdout, stderr } = spawnSync(process.execPath, ['--expose-gc', '-e', rounds, addon], {
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  // The test does not compare with a process that does not request this. From Node 22 on, such a process
  // keeps its memory too, because Node has freed a large block before any user program runs.
  const [first, second] = JSON.parse(stdout) as [number, number];
  expect(second).toBeLessThan(first / 4);
});
