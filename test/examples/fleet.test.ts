/** The fleet of examples/fleet: servers are rolled under load, and no call fails. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { page } from '../../examples/fleet/page.ts';

const program = fileURLToPath(new URL('../../dist/examples/fleet/main.js', import.meta.url));

test('three servers are rolled, one of them is killed', () => {
  const cwd = mkdtempSync(join(tmpdir(), 'fleet-test-'));
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, '3', '10', '2'], {
    cwd,
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  expect(stdout).toMatch(/10 restarts, \d{3,} calls, seconds with failed calls: 0; see fleet.html/);
  expect(stdout).toMatch(/server-0 killed/);
  expect(status).toBe(0);
  expect(readFileSync(join(cwd, 'fleet.html'), 'utf8')).toContain('server-2');
  rmSync(cwd, { recursive: true });
}, 120_000);

test('the page has a bar for each server and second, as high as its calls', () => {
  const seconds = [
    { counts: [10, 30], p99Ms: 1.25, failed: '0', events: [] },
    { counts: [20, 0], p99Ms: 2, failed: 'UNAVAILABLE 1', events: ['b killed'] },
  ];
  const html = page(['a', 'b'], seconds);
  expect([...html.matchAll(/<rect [^>]*height="(\d+)"/g)].map(([, height]) => Number(height))).toEqual([
    15, 45, 30, 0,
  ]);
  expect(html).toContain('<td>UNAVAILABLE 1<td>b killed');
});
