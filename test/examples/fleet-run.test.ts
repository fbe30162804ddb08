/**
 * Runs the fleet of examples/fleet, with etcd in network namespaces, and with a file and plain processes.
 * Servers are rolled, killed and cut off under load. No call fails, and the command ends.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { whyNoNamespaces } from '../../examples/fleet/hosts.ts';
import { whyNot } from '../needs.ts';

const program = fileURLToPath(new URL('../../dist/examples/fleet/main.js', import.meta.url));
const cwd = mkdtempSync(join(tmpdir(), 'fleet-test-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const namespaces = whyNot('etcd') || whyNoNamespaces();

test.for([
  { flags: ['--file', '--plain'], cut: 2000, first: 'plain processes', registry: 'a file', why: '' },
  { flags: [], cut: 1000, first: 'has a network namespace', registry: 'etcd', why: namespaces },
])(
  'three servers are rolled, cut off and killed: $flags',
  { timeout: 300_000 },
  ({ flags, cut, first, registry, why }, { skip }) => {
    skip(why !== '', why);
    const page = join(mkdtempSync(join(cwd, 'run-')), 'fleet.html');
    const sizes = ['--events', '10', '--clients', '4', '--cut', String(cut), '--page', page];
    const { status, signal, stdout, stderr } = spawnSync(process.execPath, [program, ...sizes, ...flags], {
      encoding: 'utf8',
      timeout: 240_000,
    });
    expect(stderr).toBe('');
    expect(stdout).toContain(first);
    expect(stdout).toContain(`registry: ${registry}\n`);
    expect(stdout).toMatch(/10 events, \d{3,} calls, seconds with failed calls: 0; see /);
    for (const event of ['server-0 rolled', `server-1 was cut off for ${cut} ms`, 'server-0 killed'])
      expect(stdout).toContain(event);
    expect([status, signal]).toEqual([0, null]);
    expect(readFileSync(page, 'utf8')).toContain('server-2');
  },
);

test('a wrong argument is an error with the usage', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, '--servers', '0'], {
    encoding: 'utf8',
  });
  expect(stderr).toMatch(/^--servers 0: give a whole number from 1 to 64\n\nnode dist/);
  expect(stdout).toBe('');
  expect(status).toBe(2);
});
