/**
 * Tests the exit codes and messages of the command, and `--watch`. The tests run the built
 * `dist/bundle/cli.js` as a user would.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { proto3, workspace } from './workspace.ts';

const main = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'dist/bundle/cli.js');

function run(directory: string, ...args: string[]): { code: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
    cwd: directory,
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1' },
  });
  return { code: status, stdout, stderr };
}

describe('rdma-rpc gen', () => {
  test('ends with 0 when it has generated', () => {
    const directory = workspace({
      'a.proto': proto3('message A {}'),
      'deep/b.proto': proto3('message B {}'),
    });
    const { code, stdout, stderr } = run(directory, 'gen', '**/*.proto', '-o', 'out');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^2 files generated in out \(2 changed, \d+ ms\)\n$/);
    expect(existsSync(join(directory, 'out/deep/b.rdma.ts'))).toBe(true);
  });

  test('takes include directories and the import extension', () => {
    const directory = workspace({
      'one/a.proto': proto3('import "b.proto";\nmessage A { B b = 1; }'),
      'two/b.proto': proto3('message B {}'),
    });
    expect(
      run(directory, 'gen', 'one/a.proto', '-o', 'out', '-I', 'one', '-I', 'two', '--import-extension', 'js')
        .code,
    ).toBe(0);
    expect(readFileSync(join(directory, 'out/a.rdma.ts'), 'utf8')).toContain("from './b.rdma.js'");
  });

  test('generates JavaScript with declarations', () => {
    const directory = workspace({ 'a.proto': proto3('message A {}') });
    const gen = ['gen', 'a.proto', '-o', 'out', '--target', 'js'];
    expect(run(directory, ...gen)).toMatchObject({ code: 0, stderr: '' });
    expect(readdirSync(join(directory, 'out')).sort()).toEqual(['a.rdma.d.ts', 'a.rdma.js']);
    expect(run(directory, ...gen, '--check').code).toBe(0);
  });

  test('takes the type of 64-bit integers from the flag or package.json', () => {
    const directory = workspace({
      'a.proto': proto3('message A { int64 x = 1; }'),
      'package.json': JSON.stringify({ 'rdma-rpc': { files: ['a.proto'], out: 'out', int64: 'string' } }),
    });
    const read = () => readFileSync(join(directory, 'out/a.rdma.ts'), 'utf8');
    expect(run(directory, 'gen')).toMatchObject({ code: 0, stderr: '' });
    expect(read()).toContain('  x: string;');
    expect(run(directory, 'gen', '--int64', 'number').code).toBe(0);
    expect(read()).toContain('  x: number;');
    const wrong = run(directory, 'gen', '--int64', 'long');
    expect(wrong).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Allowed choices are bigint, string, number'),
    });
    writeFileSync(join(directory, 'package.json'), '{ "rdma-rpc": { "int64": "long" } }');
    const { code, stderr } = run(directory, 'gen');
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining('"rdma-rpc".int64 must be "bigint", "string" or "number"'),
    });
  });

  test.each([
    [
      'commonjs',
      ['--target', 'js'],
      /^note: package\.json says "type": "commonjs", and .* `npm pkg set type=module`/,
    ],
    ['commonjs', [], /^note: package\.json says "type": "commonjs": .* compiled to CommonJS/],
    ['module', ['--target', 'js'], /^$/],
  ])('notes once how Node loads the output in a package of "type": "%s" with %j', (type, flags, note) => {
    const directory = workspace({
      'a.proto': proto3('message A {}'),
      'package.json': JSON.stringify({ type }),
    });
    const gen = ['gen', 'a.proto', '-o', 'src/gen', ...flags];
    const { code, stderr } = run(directory, ...gen);
    expect(code).toBe(0);
    expect(stderr.trimEnd()).toMatch(note);
    expect(run(directory, ...gen)).toMatchObject({ code: 0, stderr: '' });
  });

  test('ends with 1 and the position when the input is wrong, and writes nothing', () => {
    const directory = workspace({ 'a.proto': proto3('message A { Missing x = 1; }') });
    const { code, stdout, stderr } = run(directory, 'gen', 'a.proto', '-o', 'out');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toBe(
      [
        'a.proto:3:13: error: unknown type Missing',
        '  message A { Missing x = 1; }',
        '              ^^^^^^^',
        'nothing was written\n',
      ].join('\n'),
    );
    expect(existsSync(join(directory, 'out'))).toBe(false);
  });

  test('ends with 1 when a file is missing', () => {
    const { code, stderr } = run(workspace({}), 'gen', 'none.proto', '-o', 'out');
    expect(code).toBe(1);
    expect(stderr).toContain('none.proto: error: no such file');
  });

  test.each([
    ['no output directory', ['gen', 'a.proto'], /required option '-o, --out <dir>' not specified/],
    ['no file', ['gen', '-o', 'out'], /no files, and no block "rdma-rpc"/],
    ['a glob that matches nothing', ['gen', '*.none', '-o', 'out'], /no file matches \*\.none/],
    ['an unknown option', ['gen', 'a.proto', '-o', 'out', '--nope'], /unknown option '--nope'/],
    [
      'an unknown extension',
      ['gen', 'a.proto', '-o', 'out', '--import-extension', 'mjs'],
      /Allowed choices are ts, js/,
    ],
    ['an unknown target', ['gen', 'a.proto', '-o', 'out', '--target', 'dts'], /Allowed choices are ts, js/],
    [
      'a target and an extension that contradict each other',
      ['gen', 'a.proto', '-o', 'out', '--target', 'js', '--import-extension', 'ts'],
      /the target js imports \.js; the import extension ts is for the target ts/,
    ],
    ['an unknown command', ['generate'], /unknown command 'generate'/],
  ])('ends with 2 for a wrong command line: %s', (_what, args, message) => {
    const { code, stderr } = run(workspace({}), ...args);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });

  test('ends with 0 for help and version', () => {
    expect(run(workspace({}), '--help')).toMatchObject({ code: 0, stderr: '' });
    expect(run(workspace({}), 'gen', '--help').stdout).toContain('--import-extension <ext>');
    expect(run(workspace({}), '--version').stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

/** Resolves once the process has printed `text` after the last call. */
function printed(child: ChildProcess): (text: string) => Promise<void> {
  let seen = '';
  let wake = () => {};
  const collect = (chunk: Buffer) => {
    seen += chunk.toString();
    wake();
  };
  child.stdout?.on('data', collect);
  child.stderr?.on('data', collect);
  return async (text) => {
    while (!seen.includes(text)) {
      await new Promise<void>((resolve, reject) => {
        wake = resolve;
        child.once('exit', () => reject(new Error(`the command ended before it printed ${text}: ${seen}`)));
      });
    }
    seen = seen.slice(seen.indexOf(text) + text.length);
  };
}

describe('--check', () => {
  test('ends with 0 when all files are up to date, else with 1 and the outdated files, and writes nothing', () => {
    const directory = workspace({ 'a.proto': proto3('message A {}'), 'b.proto': proto3('message B {}') });
    const gen = (...flags: string[]) => run(directory, 'gen', 'a.proto', 'b.proto', '-o', 'out', ...flags);
    expect(gen('--check')).toMatchObject({ code: 1, stdout: '' });
    expect(existsSync(join(directory, 'out'))).toBe(false);
    expect(gen().code).toBe(0);
    expect(gen('--check')).toEqual({ code: 0, stdout: '2 files in out up to date\n', stderr: '' });
    writeFileSync(join(directory, 'b.proto'), proto3('message B { int32 x = 1; }'));
    expect(gen('--check')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'out/b.rdma.ts: not up to date\nrun rdma-rpc gen without --check\n',
    });
  });
});

describe('the block in package.json', () => {
  const files = (block: unknown) => ({
    'package.json': JSON.stringify({ 'rdma-rpc': block }),
    'proto/shop/a.proto': proto3('import "shop/b.proto"; message A { B b = 1; }'),
    'proto/shop/b.proto': proto3('message B {}'),
  });

  test('configures the command in any directory below, with paths relative to package.json', () => {
    const directory = workspace(
      files({
        files: ['proto/**/*.proto'],
        include: ['proto'],
        out: 'src/gen',
        importExtension: 'js',
        unknownFields: 'keep',
      }),
    );
    expect(run(join(directory, 'proto'), 'gen')).toMatchObject({ code: 0, stderr: '' });
    const text = readFileSync(join(directory, 'src/gen/shop/a.rdma.ts'), 'utf8');
    expect(text).toContain("from './b.rdma.js';");
    expect(text).toContain('$unknownFields');
  });

  test('is overridden by flags of the command line', () => {
    const directory = workspace(
      files({ files: ['proto/**/*.proto'], include: ['proto'], out: 'src/gen', importExtension: 'js' }),
    );
    expect(run(directory, 'gen', '-o', 'other', '--import-extension', 'ts').code).toBe(0);
    expect(readFileSync(join(directory, 'other/shop/a.rdma.ts'), 'utf8')).toContain("from './b.rdma.ts';");
    expect(run(directory, 'gen', '-o', 'third', '--target', 'js').code).toBe(0);
    expect(existsSync(join(directory, 'third/shop/a.rdma.d.ts'))).toBe(true);
  });

  test.each([
    ['a key that does not exist', { filse: [] }, /"rdma-rpc" has no filse; did you mean files\?/],
    ['a wrong value', { files: 'a.proto' }, /"rdma-rpc"\.files must be a list of texts/],
    ['a wrong target', { files: ['a.proto'], target: 'dts' }, /"rdma-rpc"\.target must be "ts" or "js"/],
    ['no files', { out: 'x' }, /no file matches|no files/],
    ['no block', undefined, /no files, and no block "rdma-rpc" in a package\.json/],
  ])('ends with 2 for %s', (_what, block, message) => {
    const { code, stderr } = run(workspace(files(block)), 'gen');
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});

test('--watch generates again after a change, survives an error, and ends with SIGTERM', async () => {
  const directory = workspace({
    'a.proto': proto3('import "b.proto";\nmessage A { B b = 1; }'),
    'b.proto': proto3('message B {}'),
  });
  const child = spawn(process.execPath, [main, 'gen', 'a.proto', '-o', 'out', '--watch'], {
    cwd: directory,
    env: { ...process.env, NO_COLOR: '1' },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const sees = printed(child);
  await sees('2 files generated');
  await sees('watching for changes');

  writeFileSync(join(directory, 'b.proto'), proto3('message B { int32 added = 1; }'));
  await sees('2 files generated in out (1 changed');
  expect(readFileSync(join(directory, 'out/b.rdma.ts'), 'utf8')).toContain('added: number;');

  writeFileSync(join(directory, 'b.proto'), proto3('message B { Missing x = 1; }'));
  await sees('unknown type Missing');
  await sees('nothing was written');

  writeFileSync(join(directory, 'b.proto'), proto3('message B { int32 other = 1; }'));
  await sees('2 files generated');
  expect(readFileSync(join(directory, 'out/b.rdma.ts'), 'utf8')).toContain('other: number;');

  const exit = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
  child.kill('SIGTERM');
  expect(await exit).toEqual({ code: 0, signal: null });
});
