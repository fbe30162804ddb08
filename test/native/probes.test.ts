/**
 * Tests the USDT probes of the addon. The ELF notes of the addon, which bpftrace and perf read, are compared
 * with the guide.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { addonPath } from '../../runtime/native/addon-path.ts';
import { root } from '../house/tree.ts';
import { needs } from '../needs.ts';

/** Returns arguments by name, with one list for each place in the binary. */
function probes(): Map<string, string[][]> {
  const notes = execFileSync('readelf', ['-n', addonPath()], { encoding: 'utf8' });
  const found = new Map<string, string[][]>();
  const form = /Provider: rdma_rpc\s+Name: (\w+)\s+Location: (0x[0-9a-f]+).*\s+Arguments: (.*)/g;
  for (const [, name = '', location, words = ''] of notes.matchAll(form)) {
    expect(Number(location)).toBeGreaterThan(0);
    found.set(name, [...(found.get(name) ?? []), words.trim().split(' ')]);
  }
  return found;
}

/** Returns the table of the guide: the names of probes, and the number of their arguments. */
function documented(): Map<string, number> {
  const page = readFileSync(join(root, 'docs/guides/trace.md'), 'utf8');
  const table = page.slice(page.indexOf('## Probes'));
  return new Map(
    [...table.matchAll(/^\| (`\w+`(?:, `\w+`)*) \| (.*) \|$/gm)].flatMap(([, names = '', words = '']) => {
      // Text in parentheses belongs to the argument before it.
      const count = words.replace(/\([^)]*\)/g, '').split(',').length;
      return [...names.matchAll(/\w+/g)].map(([name]) => [name, count] as const);
    }),
  );
}

describe('the addon', () => {
  needs('elf');
  test('has each probe that the page names, with its arguments of four bytes, and no other', () => {
    const found = probes();
    expect([...found.keys()].sort()).toEqual([...documented().keys()].sort());
    for (const [name, count] of documented())
      for (const places of found.get(name)!) {
        expect(places).toHaveLength(count);
        for (const place of places) expect(place).toMatch(/^4@\S+$/);
      }
  });
});
