/**
 * Tests that scripts/symbols.mjs reads the same symbols from a binary as the program readelf, and reports
 * symbols and libraries that are not available everywhere.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const scripts = new URL('../../scripts/', import.meta.url);
const { neededLibraries, neededVersions, tooMuch } = (await import(new URL('symbols.mjs', scripts).href)) as {
  neededVersions: (path: string) => Map<string, string[]>;
  neededLibraries: (path: string) => string[];
  tooMuch: (path: string) => string[];
};
const addon = fileURLToPath(new URL('../../build/Release/rdma_rpc.node', import.meta.url));

test('reads the same as readelf', ({ skip }) => {
  const { stdout, error } = spawnSync('readelf', ['--version-info', '--dynamic', '--wide', addon], {
    encoding: 'utf8',
  });
  skip(error !== undefined, 'readelf is missing (Debian package binutils)');
  const versions = [...stdout.matchAll(/ Name: GLIBC_([\d.]+) /g)].map((match) => match[1]!);
  expect(new Set(neededVersions(addon).get('GLIBC'))).toEqual(new Set(versions));
  const libraries = [...stdout.matchAll(/\(NEEDED\).*\[(.*)\]/g)].map((match) => match[1]!);
  expect(neededLibraries(addon)).toEqual(libraries);
});

test('names a version that is too new, and a library that not every system has', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-symbols-'));
  const path = join(folder, 'rdma_rpc.node');
  copyFileSync(addon, path);
  const changed = readFileSync(path, 'latin1')
    .replace('GLIBC_2.14\0', 'GLIBC_2.99\0')
    .replaceAll('libc.so.6\0', 'libd.so.6\0');
  writeFileSync(path, changed, 'latin1');
  expect(tooMuch(path)).toContain('GLIBC_2.99, newer than 2.28');
  expect(tooMuch(path)).toContain('the library libd.so.6');
  rmSync(folder, { recursive: true });
});
