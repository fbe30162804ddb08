/** Tests the list of files that the house tests look at, with git and without. */
import { expect, test } from 'vitest';
import { listedByGit, notIgnored, projectFiles } from './tree.ts';

test('has the same files without git as with it', ({ skip }) => {
  const listed = listedByGit();
  skip(listed === undefined, 'there is no git, or no checkout of it');
  expect(notIgnored().sort()).toEqual([...new Set(listed)].sort());
});

test('has sources, documents and hidden files, but no files that a build or a test creates', () => {
  const files = projectFiles();
  expect(files).toEqual(expect.arrayContaining(['runtime/index.ts', 'README.md', '.ci/run', '.gitignore']));
  expect(files.filter((file) => /(^|\/)(node_modules|dist|build|gen)\//.test(file))).toEqual([]);
});
