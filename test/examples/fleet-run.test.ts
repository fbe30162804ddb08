/**
 * Runs the fleet of examples/fleet with a file as its registry and plain processes. Servers are rolled,
 * killed and cut off under load, and no call fails.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';

const program = fileURLToPath(new URL('../../dist/examples/fleet/main.js', import.meta.url));
const cwd = mkdtempSync(join(tmpdir(), 'fleet-test-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

test.each([{ flags: ['--file', '--plain'], registry: 'a file' }])(
  'three servers are rolled, cut off and killed: $flags',
  ({ flags, registry }) => {
    const page = join(mkdtempSync(join(cwd, 'run-')), 'fleet.html');
    const sizes = ['--events', '10', '--clients', '4', '--cut', '2000', '--page', page];
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...sizes, ...flags], {
      encoding: 'utf8',
      timeout: 240_000,
    });
    expect(stderr).toBe('');
    expect(stdout).toContain(`registry: ${registry}`);
    expect(stdout).toMatch(/10 events, \d{3,} calls, seconds with failed calls: 0; see /);
    for (const event of ['server-0 rolled', 'server-1 was cut off for 2000 ms', 'server-0 killed'])
      expect(stdout).toContain(event);
    expect(status).toBe(0);
    expect(readFileSync(page, 'utf8')).toContain('server-2');
  },
  300_000,
);

test('a wrong argument is an error with the usage', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, '--servers', '0'], {
    encoding: 'utf8',
  });
  expect(stderr).toMatch(/^--servers 0: give a whole number from 1 to 64\n\nnode dist/);
  expect(stdout).toBe('');
  expect(status).toBe(2);
});
