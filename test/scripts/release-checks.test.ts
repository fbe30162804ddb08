/**
 * Tests the checks of a release: a correct package has no finding, and a package with one fault has exactly
 * the finding for that fault.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

interface Package {
  readonly name: string;
  readonly folder: string;
}
type Check = (subject: Package, version: string) => string[];
interface Target {
  readonly folder: string;
  readonly repository?: string;
  readonly version: string;
}
const load = (name: string): Promise<unknown> =>
  import(new URL(`../../scripts/release/${name}`, import.meta.url).href);
const { packageChecks } = (await load('checks.mjs')) as { packageChecks: Readonly<Record<string, Check>> };
const { linksThatWork } = (await load('links.mjs')) as {
  linksThatWork(page: string, target: Target): string;
};

let folder = '';
const write = (path: string, text: string): void => {
  mkdirSync(join(folder, dirname(path)), { recursive: true });
  writeFileSync(join(folder, path), text);
};
const manifest = (changes: object = {}): void =>
  write(
    'package.json',
    JSON.stringify({
      name: 'rdma-rpc',
      version: '1.2.3',
      exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' } },
      bin: { 'rdma-rpc': 'dist/command.js' },
      optionalDependencies: { '@rdma-rpc/linux-x64': '1.2.3' },
      peerDependencies: { jose: '^6.0.0' },
      ...changes,
    }),
  );

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-checks-'));
  manifest();
  write('LICENSE', 'MIT');
  write(
    'dist/index.js',
    "import { a } from './part.js';\nimport { b } from 'jose';\nimport { c } from 'node:fs';\n",
  );
  write('dist/part.js', 'export const a = 1;\n');
  write('dist/index.d.ts', "export { a } from './part.ts';\n");
  write('dist/part.d.ts', 'export declare const a = 1;\n');
  write('dist/command.js', '#!/usr/bin/env node\n');
  write('README.md', '[a](docs/a.md#part), [b](https://b.example), `[c](c.md)`\n```md\n[d](d.md)\n```\n');
  write('docs/a.md', '# A\n\n## Part\n\n[up](../README.md)\n');
  chmodSync(join(folder, 'dist/command.js'), 0o755);
});
afterEach(() => rmSync(folder, { recursive: true }));

const found = (): string[] =>
  Object.entries(packageChecks).flatMap(([title, check]) =>
    check({ name: 'rdma-rpc', folder }, '1.2.3').map((what) => `${title}: ${what}`),
  );

test('a correct package has no finding', () => {
  expect(found()).toEqual([]);
});

test.each<[string, () => void, string]>([
  [
    'the version',
    () => manifest({ version: '1.2.4' }),
    'one version everywhere: version is 1.2.4, not 1.2.3',
  ],
  [
    'the version of a platform package',
    () => manifest({ optionalDependencies: { '@rdma-rpc/linux-x64': '^1.2.3' } }),
    'one version everywhere: @rdma-rpc/linux-x64 is ^1.2.3, not 1.2.3',
  ],
  ['the licence', () => rmSync(join(folder, 'LICENSE')), 'licences: LICENSE is missing'],
  [
    'the licences of vendored code',
    () => write('dist/vendor/a.js', ''),
    'licences: dist/vendor/NOTICES is missing',
  ],
  ['the size', () => write('dist/large', 'x'.repeat(5_000_000)), 'size: 5000'],
  [
    'a source map',
    () => write('dist/part.js', 'export const a = 1;\n//# sourceMappingURL=part.js.map\n'),
    'no source map to nowhere: dist/part.js names the source map part.js.map, which is not there',
  ],
  [
    'an entry point',
    () => manifest({ exports: { '.': './dist/other.js' } }),
    'exports, imports and commands are there: ./dist/other.js is missing',
  ],
  [
    'a command',
    () => chmodSync(join(folder, 'dist/command.js'), 0o644),
    'exports, imports and commands are there: dist/command.js may not be executed',
  ],
  [
    'the path of a command',
    () => manifest({ bin: { 'rdma-rpc': './dist/command.js' } }),
    'exports, imports and commands are there: bin: ./dist/command.js must not begin with ./',
  ],
  [
    'a module',
    () => rmSync(join(folder, 'dist/part.js')),
    'modules and types find what they import: dist/index.js imports dist/part.js, which is not there',
  ],
  [
    'a declaration',
    () => rmSync(join(folder, 'dist/part.d.ts')),
    'modules and types find what they import: dist/index.d.ts imports dist/part.d.ts, which is not there',
  ],
  [
    'an import of an undeclared package',
    () => write('dist/part.js', "export { a } from 'left-pad/deep';\n"),
    'modules and types find what they import: dist/part.js imports left-pad/deep, which package.json does not name',
  ],
  [
    'a link',
    () => rmSync(join(folder, 'docs/a.md')),
    'links of pages lead somewhere: README.md links to docs/a.md, which is not there',
  ],
  [
    'a link with code as its text',
    () => write('docs/a.md', '![`top` on a server](../pictures/top.svg)\n'),
    'links of pages lead somewhere: docs/a.md links to ../pictures/top.svg, which is not there',
  ],
])('a fault of %s is found', (_, breakIt, finding) => {
  breakIt();
  expect(found().map((each) => each.slice(0, finding.length))).toContain(finding);
});

const page = '![`top`](pictures/top.svg) [rows](bench/RESULTS.md#a), [docs](docs/a.md), `[c](c.md)`';

test('links to files that a package lacks lead to the repository, at the tag of the version', () => {
  const repository = 'https://git.example/o/rdma-rpc';
  expect(linksThatWork(page, { folder, repository, version: '1.2.3' })).toBe(
    `![\`top\`](${repository}/raw/v1.2.3/pictures/top.svg) ` +
      `[rows](${repository}/blob/v1.2.3/bench/RESULTS.md#a), [docs](docs/a.md), \`[c](c.md)\``,
  );
});

test('without a repository only the texts of such links stay', () => {
  expect(linksThatWork(page, { folder, version: '1.2.3' })).toBe(
    '`top` rows, [docs](docs/a.md), `[c](c.md)`',
  );
});
