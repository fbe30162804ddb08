/**
 * Tests the imports of a generated file: everything that its code uses, but no name that only its comments
 * mention.
 */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { generate } from '../../codegen/index.ts';
import { proto3, workspace } from './workspace.ts';

test.each([
  ['ts', [['$', '$1']]],
  ['js', [['$', '$1'], ['$']]],
] as const)('names in comments cause no imports (%s)', async (target, expected) => {
  const mentions = '// As $rpc.CallOptions, $msgpack.msgpackForm and $2.Other.';
  const directory = workspace({
    'a.proto': proto3(`import public "b.proto";\n${mentions}\nmessage A { uint32 n = 1; }`),
    'b.proto': proto3('message B {}'),
  });
  const { outputs } = await generate({ files: [join(directory, 'a.proto')], include: [directory], target });
  const imports = outputs
    .filter(({ path }) => path.startsWith('a.'))
    .map(({ text }) => [...text.matchAll(/^import (?:type )?\* as (\S+)/gm)].map(([, name]) => name));
  expect(imports).toEqual(expected);
});
