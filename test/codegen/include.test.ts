/**
 * Tests several include directories: an import path stands for the first file that matches, and the generated
 * file must be the requested one.
 */
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { GenerateError, generate } from '../../codegen/index.ts';
import { proto3, workspace } from './workspace.ts';

const roots = {
  'one/x.proto': proto3('message One {}'),
  'two/x.proto': proto3('message Two {}'),
  'one/uses.proto': proto3('import "x.proto";\nmessage Uses { One one = 1; }'),
};

async function run(directory: string, files: readonly string[], include: readonly string[]) {
  const absolute = (path: string) => join(directory, path);
  try {
    const { outputs } = await generate({ files: files.map(absolute), include: include.map(absolute) });
    return outputs.map(({ text }) => /interface (\w+)/.exec(text)?.[1]);
  } catch (error) {
    if (!(error instanceof GenerateError)) throw error;
    return error.diagnostics.map(({ message }) => message);
  }
}

const shadowed =
  /^is shadowed by .*one\/x\.proto, which is x\.proto in an earlier include directory: name that file, or its own include directory first$/;

describe('a file that is shadowed by one of an earlier include directory', () => {
  test.each<[string, string[]]>([
    ['alone', ['two/x.proto']],
    ['requested together with the file that shadows it', ['one/x.proto', 'two/x.proto']],
    ['requested after a file that imports the one that shadows it', ['one/uses.proto', 'two/x.proto']],
  ])('%s is refused', async (_, files) => {
    const directory = workspace(roots);
    expect(await run(directory, files, ['one', 'two'])).toEqual([expect.stringMatching(shadowed)]);
  });

  test('is generated when its include directory comes first', async () => {
    const directory = workspace(roots);
    expect(await run(directory, ['two/x.proto'], ['two', 'one'])).toEqual(['Two']);
  });

  test('is the same file when it is reached by a link', async () => {
    const directory = workspace({ 'one/x.proto': proto3('message One {}') });
    symlinkSync('one', join(directory, 'two'));
    expect(await run(directory, ['two/x.proto'], ['one', 'two'])).toEqual(['One']);
  });
});
