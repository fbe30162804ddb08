/** What a process has freed it keeps, once values share chunks: their pages need not be given by the system again. */
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

/** Faults of a second round of buffers, 32 MiB of them, when the first have been collected. */
const rounds = `
  const native = require(process.argv[1]);
  if (process.argv[2] === 'kept') native.keepFreedMemory();
  const round = () => {
    for (let i = 0; i < 256; ++i) Buffer.allocUnsafeSlow(128 * 1024 + 64).fill(1);
  };
  const collected = async () => {
    for (let i = 0; i < 3; ++i) {
      global.gc();
      await new Promise((next) => setTimeout(next, 20));
    }
  };
  (async () => {
    round();
    await collected();
    const before = process.resourceUsage().minorPageFault;
    round();
    console.log(process.resourceUsage().minorPageFault - before);
  })();`;

const musl =
  (process.report.getReport() as { header: { glibcVersionRuntime?: string } }).header.glibcVersionRuntime ===
  undefined;
const sanitized = process.env['LD_PRELOAD']?.includes('san') === true;

test.skipIf(musl || sanitized)('a second round of values finds the pages of the first', () => {
  const addon =
    process.env['RDMA_RPC_ADDON'] ?? new URL('../../build/Release/rdma_rpc.node', import.meta.url).pathname;
  const faults = (kept: string): number => {
    const { stdout, stderr } = spawnSync(process.execPath, ['--expose-gc', '-e', rounds, addon, kept], {
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    return Number(stdout);
  };
  expect(faults('kept')).toBeLessThan(faults('given back') / 4);
});
