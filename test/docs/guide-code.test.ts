/**
 * The code of docs/GUIDE.md: all of it compiles in strict mode, chapters marked as runnable do what their
 * comments say.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { generate } from '../../codegen/index.ts';
import { root } from '../house/tree.ts';
import { filesOf } from '../package/readme.ts';
import { chaptersOf, guide, namesIn, readme, tableOf } from './document.ts';

const COMPILE_LIMIT_MS = 120_000;
const chapters = chaptersOf(guide).map((chapter, i) => ({ ...chapter, file: `chapter-${i}.ts` }));
let directory = '';

beforeAll(async () => {
  mkdirSync(join(root, 'gen'), { recursive: true });
  directory = mkdtempSync(join(root, 'gen', 'guide-'));
  const protos = [...filesOf(readme), ...filesOf(guide)].filter(([name]) => name.endsWith('.proto'));
  for (const [name, text] of protos) writeFileSync(join(directory, name), text);
  const files = protos.map(([name]) => join(directory, name));
  await generate({ files, include: [directory], out: join(directory, 'gen') });
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** A table of names as an object type that has exactly the keys of a type. */
function namesAreKeys(mark: string, type: string): string {
  const names = tableOf(guide, mark).map(([cell = '']) => namesIn(cell)[0]?.replace(/\(.*\)/, ''));
  return `export const ${mark.replace(/\W/g, '_')}: Record<${type}, 0> = { ${names.map((name) => `${name}: 0`).join(', ')} };\n`;
}

test(
  'compiles, and the tables of fields name all of them and no others',
  () => {
    for (const { file, code } of chapters) writeFileSync(join(directory, file), `${code}\nexport {};\n`);
    writeFileSync(
      join(directory, 'tables.ts'),
      `import type { CallOptions, HandlerContext, PeerInfo, RpcError } from 'rdma-rpc';\n${namesAreKeys('keys: CallOptions', 'keyof CallOptions')}${namesAreKeys('keys: HandlerContext', 'keyof HandlerContext')}${namesAreKeys('keys: PeerInfo', 'keyof PeerInfo')}${namesAreKeys('keys: RpcError', 'Exclude<keyof RpcError, keyof Error>')}`,
    );
    const compilerOptions = {
      noEmit: true,
      rootDir: '../..',
      exactOptionalPropertyTypes: true,
      // A reader does the rest with what a chapter has made.
      noUnusedLocals: false,
    };
    const config = { extends: '../../tsconfig.json', compilerOptions, include: ['.'] };
    writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(config));
    let output = '';
    try {
      execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', directory], {
        encoding: 'utf8',
      });
    } catch (error) {
      output = (error as { stdout: string }).stdout;
    }
    // The runtime's own sources are checked by their build, with its settings.
    const ours = (line: string): boolean => line.includes('guide-') || line.startsWith('error');
    expect(output.split('\n').filter(ours)).toEqual([]);
  },
  COMPILE_LIMIT_MS,
);

test.each(chapters.filter(({ run }) => run))(
  '$title: gives what its comments say',
  async ({ file, code }) => {
    let checks = 0;
    const checked = code.replace(/^(.*); \/\/ → (.*)$/gm, (_, expression: string, value: string) => {
      ++checks;
      return `expect(${expression.trim()}).toEqual(${value});`;
    });
    expect(checks).toBeGreaterThan(0);
    const path = join(directory, `run-${file}`);
    writeFileSync(path, `import { expect } from 'vitest';\n${checked}`);
    await import(path);
  },
);

test('most chapters are run', () => {
  expect(chapters.filter(({ run }) => !run).map(({ title }) => title)).toEqual([
    'Handlers',
    'Settings and counters',
    'connect-es',
    'Worker threads',
  ]);
});
