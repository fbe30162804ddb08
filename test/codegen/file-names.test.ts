/**
 * Tests file names that cannot stand in an import unchanged. Both Node and the compiler must find the output.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { generate } from '../../codegen/index.ts';
import { diagnosticsOf, proto3, workspace } from './workspace.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** The name of a .proto without its extension, and the name of its generated file. */
const names = [
  ['a#b', 'a$23b'],
  ['what?', 'what$3f'],
  ['100%', '100$25'],
  ['%41', '$2541'],
  ['back\\slash', 'back$5cslash'],
  ['tab\there', 'tab$09here'],
  ['line\nbreak', 'line$0abreak'],
  ['dir#1/in?side', 'dir$231/in$3fside'],
  ['.dot', '.dot'],
  ['..dots', '..dots'],
  ['.hidden/inside', '.hidden/inside'],
  ["it's (a) [b] {c} & +, ;=@!~^", "it's (a) [b] {c} & +, ;=@!~^"],
] as const;

function files(): Record<string, string> {
  const all: Record<string, string> = {};
  for (const [i, [name]] of names.entries()) {
    all[`${name}.proto`] = proto3(`message ${name.includes('\\') ? 'N' : 'M'}${i} { int32 x = 1; }`);
    all[`${name} main.proto`] = proto3(
      // A backslash cannot stand in an import, but such a file can be requested.
      name.includes('\\')
        ? `message M${i} { int32 x = 1; } message Main${i} { M${i} m = 1; }`
        : `import ${JSON.stringify(`${name}.proto`)};\nmessage Main${i} { M${i} m = 1; }`,
    );
  }
  return all;
}

test.each(['ts', 'js'] as const)('the target %s imports files with unusual names', async (target) => {
  mkdirSync(join(root, 'gen'), { recursive: true });
  const place = mkdtempSync(join(root, 'gen', 'names-'));
  onTestFinished(() => rmSync(place, { recursive: true, force: true }));
  const given = files();
  const directory = workspace(given);
  const paths = Object.keys(given).map((path) => join(directory, path));
  const { outputs } = await generate({ files: paths, include: [directory], out: place, target });
  for (const [, output] of names)
    expect(outputs.map(({ path }) => path)).toContain(`${output}.rdma.${target}`);

  const uses = names.map(
    ([, output], i) =>
      `import { Main${i} } from ${JSON.stringify(`./${output} main.rdma.${target}`)};
export const x${i}: number | undefined = Main${i}.decode(Main${i}.encode({ m: { x: ${i} } })).m?.x;
// @ts-expect-error the type of the field is known
export const wrong${i}: string = Main${i}.create().m?.x;
`,
  );
  writeFileSync(join(place, 'uses.ts'), uses.join(''));
  const compilerOptions = {
    target: 'es2023',
    module: 'nodenext',
    strict: true,
    noEmit: true,
    types: [],
    rewriteRelativeImportExtensions: true,
  };
  writeFileSync(join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['uses.ts'] }));
  const compiled = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', place], {
    encoding: 'utf8',
  });
  expect(compiled.stdout).toBe('');

  // This Node may be unable to run TypeScript, so it runs the code of the target `js` in place of the target
  // `ts`.
  if (target === 'ts') return;
  const script = uses.map((text) => text.split('\n')[0]).join('\n');
  const loaded = `${script}\nconsole.log([${names.map((_, i) => `Main${i}.create({ m: { x: ${i} } }).m.x`).join()}].join());`;
  writeFileSync(join(place, 'load.mjs'), loaded);
  const { stdout, stderr } = spawnSync(process.execPath, [join(place, 'load.mjs')], { encoding: 'utf8' });
  expect({ stdout, stderr }).toEqual({ stdout: `${names.map((_, i) => i).join()}\n`, stderr: '' });
});

test('two files with the same output file are an error', async () => {
  expect(
    await diagnosticsOf({ 'a#b.proto': proto3('message A {}'), 'a$23b.proto': proto3('message B {}') }),
  ).toEqual(['a$23b.proto: error: a$23b.proto and a#b.proto both become a$23b.rdma.ts: rename one | ']);
});
