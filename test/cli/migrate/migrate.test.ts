/**
 * Tests that `rdma-rpc migrate` converts code for grpc-js, nice-grpc and connect-es, that the result
 * compiles, and which parts are left for a person.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root } from '../../house/tree.ts';
import { run } from '../command.ts';
import { MigrateBed } from './bed.ts';
import { connectCases } from './connect-cases.ts';
import { generatedCases } from './generated-cases.ts';
import { grpcCases } from './grpc-js-cases.ts';
import { niceCases } from './nice-grpc-cases.ts';

const COMPILE_LIMIT_MS = 120_000;
const bed = new MigrateBed();
beforeAll(() => bed.prepare());
afterAll(() => bed.remove());

const cases = [
  ...niceCases.map((each) => ({ library: 'nice-grpc', ...each })),
  ...connectCases.map((each) => ({ library: 'connect-es', ...each })),
  ...grpcCases.map((each) => ({ library: 'grpc-js', ...each })),
  ...generatedCases.map((each) => ({ library: 'generated code', ...each })),
].map((each, index) => ({ ...each, file: `case-${index}.ts` }));

describe.each(cases)('$library: $what', ({ file, before, after = before, left = [] }) => {
  test('is converted as expected, and the rest is listed by line', () => {
    const found = bed.migrate(file, before);
    expect(found.after).toBe(after);
    expect(found.left.map(({ line }) => line)).toEqual(left.map(([line]) => line));
    for (const [index, [, says]] of left.entries()) expect(found.left[index]!.text).toMatch(says);
    for (const { page } of found.left) {
      const [path, section] = page.split('#');
      expect(existsSync(join(root, path!)), page).toBe(true);
      if (section !== undefined) expect(headingsOf(path!)).toContain(section);
    }
  });

  test('converted code is not converted again', () => {
    if (left.length > 0) return;
    expect(bed.migrate(file, after)).toEqual({ after, left: [] });
  });
});

describe('the command', () => {
  const before = `import { createServer, Status } from 'nice-grpc';

createServer().use(middleware);
export const gone = Status.NOT_FOUND;
`;
  const after = `import { createServer, Status } from 'rdma-rpc';

createServer().use(middleware);
export const gone = Status.NOT_FOUND;
`;
  const gen = (): string => join(bed.folder, 'gen');

  test('prints a diff with --dry-run, and changes nothing', async () => {
    const path = bed.write('app/src/server.ts', before);
    const { code, out, errors } = await run('migrate', join(bed.folder, 'app'), '--gen', gen(), '--dry-run');
    expect(code).toBe(1);
    expect(out.split('\n').slice(2)).toEqual([
      '@@ -1,4 +1,4 @@',
      "-import { createServer, Status } from 'nice-grpc';",
      "+import { createServer, Status } from 'rdma-rpc';",
      ' ',
      ' createServer().use(middleware);',
      ' export const gone = Status.NOT_FOUND;',
      '',
    ]);
    expect(errors).toMatch(
      /server\.ts:3: server\.use\(…\): write the middleware as an interceptor \(docs\/guides\//,
    );
    expect(errors).toMatch(/^1 of 1 files would be changed, 1 place left for you$/m);
    expect(readFileSync(path, 'utf8')).toBe(before);
  });

  test('changes files, and has nothing left to do the second time', async () => {
    const path = bed.write('app/src/server.ts', before);
    bed.write('app/node_modules/other/index.ts', before);
    const first = await run('migrate', join(bed.folder, 'app'), '--gen', gen());
    expect(first).toMatchObject({ code: 1, out: '' });
    expect(readFileSync(path, 'utf8')).toBe(after);
    expect(bed.read('app/node_modules/other/index.ts')).toBe(before);
    const second = await run('migrate', path, '--gen', gen());
    expect(second).toMatchObject({ code: 0, errors: '0 of 0 files changed, 0 places left for you\n' });
  });

  test.each<[string, () => string[], RegExp]>([
    ['no --gen', () => ['.'], /required option '--gen <dir>' not specified/],
    ['a folder that does not exist', () => ['no/such', '--gen', gen()], /no\/such: no such file or folder/],
    ['a --gen that does not exist', () => ['--gen', 'no/such'], /--gen no\/such: no such folder/],
    [
      'a --gen without generated code',
      () => ['--gen', join(bed.folder, 'old')],
      /there is no output of rdma-rpc gen/,
    ],
  ])('%s is a wrong command line', async (_, args, says) => {
    const { code, errors } = await run('migrate', ...args());
    expect([code, errors]).toEqual([2, expect.stringMatching(says)]);
  });
});

function headingsOf(path: string): string[] {
  return [...readFileSync(join(root, path), 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading!.toLowerCase().replace(/ /g, '-'),
  );
}

test(
  'every case that is converted completely compiles',
  () => {
    const whole = cases.filter(({ after, left = [] }) => after !== undefined && left.length === 0);
    expect(whole.length).toBeGreaterThan(10);
    for (const { file, after } of whole) bed.write(`whole/${file}`, after!.replaceAll("'./gen/", "'../gen/"));
    const compilerOptions = {
      noEmit: true,
      rootDir: '../../..',
      moduleResolution: 'bundler',
      module: 'preserve',
      noUnusedLocals: false,
      noUnusedParameters: false,
      allowImportingTsExtensions: true,
    };
    const config = { extends: '../../../tsconfig.json', compilerOptions, include: ['.'] };
    bed.write('whole/tsconfig.json', JSON.stringify(config));
    let output = '';
    try {
      const tsc = join(root, 'node_modules/typescript/bin/tsc');
      execFileSync(process.execPath, [tsc, '-p', join(bed.folder, 'whole')], { encoding: 'utf8' });
    } catch (error) {
      output = (error as { stdout: string }).stdout;
    }
    const ours = (line: string): boolean => line.includes('/whole/') || line.startsWith('error');
    expect(output.split('\n').filter(ours)).toEqual([]);
  },
  COMPILE_LIMIT_MS,
);
