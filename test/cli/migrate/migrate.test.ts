/**
 * `rdma-rpc migrate`: what becomes of code for grpc-js, nice-grpc and connect-es, that it compiles, and what
 * is left for a person.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root } from '../../house/tree.ts';
import { MigrateBed } from './bed.ts';
import { connectCases } from './connect-cases.ts';
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
].map((each, index) => ({ ...each, file: `case-${index}.ts` }));

describe.each(cases)('$library: $what', ({ file, before, after = before, left = [] }) => {
  test('becomes what is expected, and the rest is named by its line', () => {
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

  test('what has been converted is not converted again', () => {
    if (left.length > 0) return;
    expect(bed.migrate(file, after)).toEqual({ after, left: [] });
  });
});

function headingsOf(path: string): string[] {
  const text = execFileSync('cat', [join(root, path)], { encoding: 'utf8' });
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading!.toLowerCase().replace(/ /g, '-'));
}

test(
  'everything that has been converted whole compiles',
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
