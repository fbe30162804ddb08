/**
 * Tests that each planted bug still fits: its text occurs once in its file, and the test that must find it
 * exists. A change to such a text fails here at once, instead of when the bugs are next planted (npm run
 * test:planted).
 */
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { exists, projectFiles, read, root } from './tree.ts';

interface NativeBug {
  readonly name: string;
  readonly program: string;
  /** `Suite.Name`; when the test has parameters, the text before and after it. */
  readonly caughtBy: string;
}
interface TypeScriptBug {
  readonly name: string;
  /** A file of tests, and the name of the test. */
  readonly caughtBy: readonly [string, string];
}
type Bug = NativeBug | TypeScriptBug;
/** The common part of both ways to plant a bug. */
interface Planter {
  /** Returns why a bug does not fit, or '' when it fits. */
  whyUnfit(bug: Bug): string;
}

const load = (file: string): Promise<unknown> => import(new URL(`../planted/${file}`, import.meta.url).href);
const { Native } = (await load('native.mjs')) as { Native: new (...paths: string[]) => Planter };
const { TypeScript } = (await load('typescript.mjs')) as {
  TypeScript: new (root: string, scratch: string, limitMs: number) => Planter;
};

const isNative = (bug: Bug): bug is NativeBug => 'program' in bug;
const tables = readdirSync(new URL('../planted', import.meta.url))
  .filter((file) => !['main.mjs', 'native.mjs', 'typescript.mjs', 'vitest.config.ts'].includes(file))
  .map(async (file) => Object.values((await load(file)) as Record<string, Bug[]>));
const bugs = (await Promise.all(tables)).flat(2);
const native = new Native(root, '', '');
const typescript = new TypeScript(root, '', 0);

const nativeTests = projectFiles()
  .filter((file) => /^native\/test\/.*\.(cc|h)$/.test(file))
  .map(read)
  .join('\n');

/** Returns the text of a test file and of the tables that it imports. */
function textsOf(file: string): string {
  const text = read(file);
  const imported = [...text.matchAll(/from '(\.[^']+\.ts)'/g)].map(([, path = '']) =>
    join(dirname(file), path),
  );
  return [text, ...imported.filter((path) => path.startsWith('test/') && exists(path)).map(read)]
    .join('\n')
    .replaceAll("\\'", "'");
}

/**
 * Returns whether a file has a test with this name, which may consist of a title with parameters: 'of %i
 * bytes'.
 */
function hasTest(file: string, name: string): boolean {
  const text = textsOf(file);
  if (text.includes(name)) return true;
  const titles = [...text.matchAll(/(['"`])(.*?%[a-z].*?)\1/g)].map(([, , title = '']) => title);
  const fixed = titles.map((title) => title.split(/%[a-z]/)).filter((parts) => parts.join('').length > 8);
  return fixed.some((parts) => {
    const escaped = parts.map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
    return new RegExp(`^${escaped.join('.*')}$`).test(name);
  });
}

test.each(bugs)('$name', (bug) => {
  if (isNative(bug)) {
    expect(native.whyUnfit(bug)).toBe('');
    const [suite, name] = bug.caughtBy.replace(/^\w+\/(?=\w+\.)|\/\w+$/g, '').split('.');
    expect(nativeTests).toMatch(new RegExp(`\\bTEST(_F|_P)?\\(${suite},\\s*${name}\\)`));
  } else {
    expect(typescript.whyUnfit(bug)).toBe('');
    const [file, name] = bug.caughtBy;
    expect(hasTest(file, name), `${file} has no test '${name}'`).toBe(true);
  }
});

test('no two have the same name, and there are some', () => {
  expect(new Set(bugs.map(({ name }) => name)).size).toBe(bugs.length);
  expect(bugs.length).toBeGreaterThan(100);
});
