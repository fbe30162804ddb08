/** `rdma-rpc` when its output cannot be written: as GNU's programs do it. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { main } from './command.ts';

interface Outcome {
  readonly code: number | null;
  readonly errors: string;
}

/** Its output goes into that file; undefined: to a reader that is gone before there is any. */
async function run(file: string | undefined, ...args: string[]): Promise<Outcome> {
  const output = file === undefined ? 'pipe' : openSync(file, 'w');
  const held = ['-c', 'read go && exec "$@"', 'sh', process.execPath, main, ...args];
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

test.each(commands)('%s %s: a full disk is an error, in one sentence', async (...args) => {
  const { code, errors } = await run('/dev/full', ...args);
  expect(errors).toMatch(/^rdma-rpc: the output cannot be written: ENOSPC: .*\n$/);
  expect(code).toBe(1);
});

test.each(commands)('%s %s: a reader that has seen enough is none', async (...args) => {
  expect(await run(undefined, ...args)).toEqual({ code: 0, errors: '' });
});

const mistakes: [string[], number][] = [
  [['--nosuch'], 2],
  [['call'], 2],
  [['top', 'abc'], 2],
  [['list', 'unix:/nobody/here'], 1],
];

test.each(mistakes)('%s: the exit code is %i where errors cannot be written either', (args, code) => {
  const full = openSync('/dev/full', 'w');
  const { status } = spawnSync(process.execPath, [main, ...args], { stdio: ['ignore', full, full] });
  closeSync(full);
  expect(status).toBe(code);
});
