/**
 * Tests that each vitest configuration runs its own files only. In a guest, a configuration that also ran all
 * other files took an hour.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { globSync } from 'tinyglobby';
import { expect, test } from 'vitest';

const root = new URL('../..', import.meta.url);

async function listed(...args: string[]): Promise<string[]> {
  const command = ['node_modules/vitest/vitest.mjs', 'list', '--filesOnly', '--json', ...args];
  const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: root });
  const files = JSON.parse(stdout) as { file: string }[];
  return files.map(({ file }) => file.slice(file.indexOf('/test/') + 1)).sort();
}

test.each([
  ['slow', '*.slow.ts'],
  ['rdma', '**/*.test.ts'],
  ['quickstart', '**/*.test.ts'],
])('test/%s has the files of its folder', async (folder, pattern) => {
  const files = globSync(`test/${folder}/${pattern}`, { cwd: root }).sort();
  expect(files.length).toBeGreaterThan(0);
  expect(await listed('--config', `test/${folder}/vitest.config.ts`)).toEqual(files);
});

test('each other file is in exactly one project', async () => {
  const ignore = ['test/rdma/**', 'test/quickstart/**'];
  const files = globSync('test/**/*.test.ts', { cwd: root, ignore }).sort();
  expect(await listed()).toEqual(files);
});

test('npm test omits only a few files', async () => {
  const few = await listed('--project', 'apart', '--project', 'together');
  const left = (await listed()).filter((file) => !few.includes(file));
  expect(left).toContain('test/containers/containers.test.ts');
  expect(few.length).toBeGreaterThan(5 * left.length);
});
