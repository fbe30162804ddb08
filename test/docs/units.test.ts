/**
 * Lets systemd itself check the units that the documents show: a directive that does not exist, or a value
 * that it does not take, is named. The program of a unit is replaced by one that every system has.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { pages } from './document.ts';

const verifier = '/usr/bin/systemd-analyze';
const why = existsSync(verifier) ? '' : 'systemd-analyze is not installed';
beforeEach(({ skip }) => skip(why !== '', why));

const units = pages.flatMap(({ path, text }) =>
  [...text.matchAll(/^```ini\n([\s\S]*?)^```$/gm)]
    .map(([, unit]) => unit!)
    .filter((unit) => unit.includes('\n[Service]\n'))
    .map((unit) => ({ page: path, unit })),
);

/** Returns what systemd says about the unit. */
function complaintsOf(unit: string): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'units-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'shown.service');
  writeFileSync(file, unit.replace(/^ExecStart=\S+/gm, 'ExecStart=/bin/true'));
  const { stderr, error } = spawnSync(verifier, ['verify', '--man=no', file], { encoding: 'utf8' });
  if (error !== undefined) throw error;
  // Other units of this machine may be wrong, too.
  return stderr.split('\n').filter((line) => line.includes('shown.service'));
}

test.each(units)('the unit of $page is valid', ({ unit }) => {
  expect(complaintsOf(unit)).toEqual([]);
});

test('pages show units, and mistakes in them are found', () => {
  expect(units.length).toBeGreaterThan(1);
  for (const { unit } of units) {
    expect(complaintsOf(unit.replace('Restart=', 'Restarts='))).toEqual([
      expect.stringContaining('Restarts'),
    ]);
    expect(complaintsOf(unit.replace(/TimeoutStopSec=.*/, 'TimeoutStopSec=soon'))).toHaveLength(1);
  }
});
