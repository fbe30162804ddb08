/** Tests `rdma-rpc` when its output cannot be written: it behaves like GNU's programs. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createServer, type Server } from 'rdma-rpc';
import { addReflection } from 'rdma-rpc/reflection';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { main } from './command.ts';

interface Outcome {
  readonly code: number | null;
  readonly errors: string;
}

let server: Server;
let address: string;
beforeAll(async () => {
  server = createServer().add(EchoDefinition, { echo: (r) => r, behave: (r) => r });
  addReflection(server);
  address = await server.listen('127.0.0.1:0');
});
afterAll(() => server.shutdown({ graceMs: 0 }));

const run = (file: string | undefined, ...args: string[]) => runProgram(main, file, ...args);

/** Runs a command whose output goes to `file`, or to a reader that closes before any output. */
async function runProgram(program: string, file: string | undefined, ...args: string[]): Promise<Outcome> {
  const output = file === undefined ? 'pipe' : openSync(file, 'w');
  const held = ['-c', 'read go && exec "$@"', 'sh', process.execPath, program, ...args];
  const child = spawn('sh', held, { stdio: ['pipe', output, 'pipe'] });
  if (typeof output === 'number') closeSync(output);
  if (child.stdout !== null) {
    child.stdout.destroy();
    await once(child.stdout, 'close');
  }
  child.stdin!.end('go\n');
  const [errors, [code]] = await Promise.all([text(child.stderr!), once(child, 'close')]);
  return { code, errors };
}

const commands = [['--help'], ['--version'], ['info'], ['devices', '--json'], ['explain', '--help']];

test.each(commands)('%s %s: a full disk is an error of one sentence', async (...args) => {
  const { code, errors } = await run('/dev/full', ...args);
  expect(errors).toMatch(/^rdma-rpc: the output cannot be written: ENOSPC: .*\n$/);
  expect(code).toBe(1);
});

test.each(commands)('%s %s: a reader that closes early is no error', async (...args) => {
  expect(await run(undefined, ...args)).toEqual({ code: 0, errors: '' });
});

// The input of a plugin is the output of protoc. An empty input is a request without files.
const plugin = join(dirname(main), 'protoc-gen.js');

test('the plugin of protoc: a full disk is an error of one sentence, and a closed reader is no error', async () => {
  const full = await runProgram(plugin, '/dev/full');
  expect(full.errors).toMatch(/^protoc-gen-rdma-rpc: the output cannot be written: ENOSPC: .*\n$/);
  expect(full.code).toBe(1);
  expect(await runProgram(plugin, undefined)).toEqual({ code: 0, errors: '' });
});

const files = [['--csv'], ['--html'], ['--hdr-log']];

test.each(files)('bench %s: a file that cannot be written is named', async (flag) => {
  const args = ['bench', address, 'test.echo.Echo/Echo', '-n', '10', flag, '/dev/full'];
  const { code, errors } = await run('/dev/null', ...args);
  expect(errors).toContain('/dev/full cannot be written: ENOSPC');
  expect(code).toBe(1);
});

test.each([['--save'], ['--chrome']])('trace %s: a file that cannot be written is named', async (flag) => {
  const { code, errors } = await run('/dev/null', 'trace', String(process.pid), flag, '/dev/full');
  expect(errors).toContain('/dev/full cannot be written: ENOSPC');
  expect(code).toBe(1);
});

const mistakes: [string[], number][] = [
  [['--nosuch'], 2],
  [['call'], 2],
  [['top', 'abc'], 2],
  [['list', 'unix:/nobody/here'], 1],
];

test.each(mistakes)('%s: the exit code is %i even when the error cannot be written', (args, code) => {
  const full = openSync('/dev/full', 'w');
  const { status } = spawnSync(process.execPath, [main, ...args], { stdio: ['ignore', full, full] });
  closeSync(full);
  expect(status).toBe(code);
});
