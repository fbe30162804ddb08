/** Tests that the trace of a failed session is complete although its process ends because of that failure. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { run } from '../cli/command.ts';
import { ServerProcess } from '../runtime/process/processes.ts';

const begin = `
  import { createChannel, createClient } from 'rdma-rpc';
  import { EchoDefinition } from './dist/test/runtime/gen/echo.rdma.js';
  const channel = createChannel(process.argv[1], { fabric: 'shm' });
  const client = createClient(EchoDefinition, channel);
  const echo = () => client.echo({ text: 'x' });
  await echo();
  console.log('ready');`;

test.each([
  ['an uncaught error', `${begin} for (;;) await echo();`],
  ['process.exit()', `${begin} try { for (;;) await echo(); } catch { process.exit(1); }`],
])('of a client that ends by %s', { timeout: 60_000 }, async (_, program) => {
  const folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-trace-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (let round = 0; round < 3; round++) {
    const traces = join(folder, String(round));
    const server = await ServerProcess.start('127.0.0.1:0');
    const child = spawn(process.execPath, ['--input-type=module', '-e', program, server.address], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { ...process.env, RDMA_RPC_TRACE_FOLDER: traces },
    });
    await once(child.stdout, 'data');
    const exit = once(child, 'exit');
    await server.kill('SIGKILL');
    expect(await exit).toEqual([1, null]);
    const files = readdirSync(traces);
    expect(files).toHaveLength(1);
    const { code, errors } = await run('trace', join(traces, files[0]!));
    expect({ code, errors }).toEqual({ code: 0, errors: '' });
  }
});
