/**
 * Compares the commands' flags with the pages of docs/, which must have each flag, by its long name or its
 * letter.
 */
import { expect, test } from 'vitest';
import { run } from '../cli/command.ts';
import { documents } from './document.ts';

/** Matches a line of `--help`: the flag's letter, if it has one, and its name. */
const flagLine = /^ {2}(?:(-\w), )?(--[a-z-]+)/gm;

test.each([
  'info',
  'devices',
  'links',
  'events',
  'doctor',
  'explain',
  'health',
  'list',
  'describe',
  'migrate',
  'call',
  'bench',
  'perf',
  'ping',
  'top',
  'trace',
  'tunnel',
])('rdma-rpc %s', async (command) => {
  const { code, out } = await run(command, '--help');
  expect(code).toBe(0);
  const flags = [...out.matchAll(flagLine)].filter(([, , name]) => name !== '--help');
  expect(flags).not.toEqual([]);
  const unknown = flags.filter(
    ([, letter, name]) =>
      !documents.includes(name!) && (letter === undefined || !documents.includes(`\`${letter}`)),
  );
  expect(unknown.map(([line]) => line.trim())).toEqual([]);
  // A reader of one command's help does not know the help of another one.
  expect(out).not.toMatch(/\b(as for|the same from|of docs\/schemas)\b/);
});

test('the help of tunnel says which end each flag belongs to, and whom it accepts by default', async () => {
  const { out } = await run('tunnel', '--help');
  const text = out.replace(/\s+/g, ' ');
  expect(text).toContain('--grace <ms> after SIGTERM or SIGINT: how long open connections may continue');
  expect(text).toContain('may be repeated (default: every listening end)');
  expect(text).toContain('--servername <name> with --listen: name that');
});
