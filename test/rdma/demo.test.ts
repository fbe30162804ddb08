/**
 * Runs the demo on RDMA devices, as a user starts it. The demo runs all of its sizes, including the 16 and 64
 * MiB that devices without memory windows copy through limited memory. The error of a demo that cannot work
 * is tested too.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { littleLockedMemory, whyNotLittle } from './little-memory.ts';
import { serverDevice } from './pair.ts';

const script = fileURLToPath(new URL('../../dist/examples/kv/demo.js', import.meta.url));
/** The slowest guest needs less than this. */
const LIMIT_MS = 400_000;

function demo(...before: string[]) {
  // With 0, the demo makes the smallest number of calls of each size.
  const [program, ...args] = [...before, process.execPath, script, '0'];
  const env = { ...process.env, RDMA_RPC_FABRIC: 'verbs', RDMA_RPC_DEVICE: serverDevice };
  return spawnSync(program!, args, { encoding: 'utf8', env, timeout: LIMIT_MS });
}

test('the demo gets the right value for every size', { timeout: LIMIT_MS }, () => {
  const { status, stdout, stderr } = demo();
  expect(status, stderr).toBe(0);
  expect(stdout).toContain(`over verbs on ${serverDevice}`);
  for (const size of ['16 MiB: 16 calls', '64 MiB: 8 calls']) expect(stderr).toContain(size);
  expect(stdout).toMatch(/^[\d,]+ calls in .*: every value was the right one$/m);
});

describe.skipIf(whyNotLittle !== '')(
  `with little locked memory${whyNotLittle && ` (${whyNotLittle})`}`,
  () => {
    test('the demo ends with a sentence that names the limit', { timeout: LIMIT_MS }, () => {
      const { status, stderr } = demo(...littleLockedMemory);
      expect(status).toBe(1);
      expect(stderr).toMatch(/locked memory is limited to 65536 bytes \(raise it with ulimit -l/);
      expect(stderr).not.toMatch(/^ +at /m);
    });
  },
);
