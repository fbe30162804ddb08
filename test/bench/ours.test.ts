/**
 * Tests our own rows of the benchmark: client and server, as two processes, connect over each kind of socket.
 * The speed of client and server is not tested here.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const main = fileURLToPath(new URL('../../dist/bench/main.js', import.meta.url));

test.each(['asleep-32B-x1', 'tcp-asleep-32B-x1'])('%s', { timeout: 60_000 }, (scenario) => {
  if (!existsSync(main)) throw new Error(`${main} is missing: run npm run build`);
  const args = ['--quick', '--only', 'rdma-rpc', scenario];
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], { encoding: 'utf8' });
  expect(stdout + stderr).not.toContain('NOT RUN');
  expect(stdout + stderr).toContain(`rdma-rpc ${scenario}: `);
  expect(status).toBe(0);
});
