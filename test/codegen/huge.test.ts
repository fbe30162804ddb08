/**
 * Tests input that is large in one dimension. The generator must not depend on the depth of the stack.
 */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { generate } from '../../codegen/index.ts';
import { DescriptorIndex } from '../../runtime/services/descriptor-index.ts';
import { diagnosticsOf, proto3, workspace } from './workspace.ts';

const twelveMillion = 12_000_000;

describe('texts of twelve million characters', () => {
  test.each([
    ['a string', `option java_package = "${'x'.repeat(twelveMillion)}";`],
    ['a string of escapes', `option java_package = "${'\\n'.repeat(twelveMillion / 2)}";`],
    ['a comment in a line', `// ${'x'.repeat(twelveMillion)}`],
    ['a comment block', `/* ${'x *\n'.repeat(twelveMillion / 4)}*/\nmessage A {}`],
    ['blank space', ' \n'.repeat(twelveMillion / 2)],
    ['a name', `message A${'x'.repeat(twelveMillion)} {}`],
  ])('are read as %s', async (_what, body) => {
    expect(await diagnosticsOf({ 'a.proto': proto3(body) })).toEqual([]);
  });

  test.each([
    ['a number', `message A { int32 x = ${'1'.repeat(twelveMillion)}; }`],
    ['an exponent', `message A { int32 x = ${'1e+'.repeat(twelveMillion / 3)}; }`],
    ['a string without an end', `option java_package = "${'x'.repeat(twelveMillion)}`],
  ])('are an error as %s', async (_what, body) => {
    const found = await diagnosticsOf({ 'a.proto': proto3(body) });
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(/^a\.proto:3:\d+: error: /);
  });
});

test.each(['', 'public '])('a chain of five thousand %simports', async (kind) => {
  const last = 4999;
  const files = Object.fromEntries(
    Array.from({ length: last + 1 }, (_, i) => [
      `f${i}.proto`,
      i === last ? proto3('message Last {}') : `syntax = "proto3";\nimport ${kind}"f${i + 1}.proto";`,
    ]),
  );
  const directory = workspace({
    ...files,
    'a.proto': proto3(`import "f0.proto";\n${kind === '' ? 'message A {}' : 'message A { Last last = 1; }'}`),
  });
  const { outputs } = await generate({ files: [join(directory, 'a.proto')], include: [directory] });
  expect(outputs).toHaveLength(last + 2);
});

test('reflection over a chain of imports that is longer than the stack allows', () => {
  const name = (text: string) => Uint8Array.of(10, text.length, ...Buffer.from(text));
  let file: { name: string; bytes: Uint8Array; dependencies: object[] } | undefined;
  for (let i = 0; i < 50_000; i++) {
    const path = `f${i}.proto`;
    file = { name: path, bytes: name(path), dependencies: file === undefined ? [] : [file] };
  }
  const index = new DescriptorIndex([file as never]);
  expect(index.file('f0.proto')?.name).toBe('f0.proto');
});

describe('two files of one run that use a number of FieldOptions for different extensions', () => {
  const extending = (name: string, type: string, more = '') =>
    `syntax = "proto3";\npackage ${name};\nimport "google/protobuf/descriptor.proto";\nmessage Rule { string text = 1; }\nextend google.protobuf.FieldOptions { ${type} rule = 50001; }\n${more}`;
  const types = ['string', 'Rule', 'int32', 'repeated int32', 'double', 'bytes', 'repeated Rule'];
  const sample = (type: string) =>
    type.endsWith('Rule')
      ? '{ text: "abc" }'
      : type.endsWith('int32')
        ? '5'
        : type === 'double'
          ? '0.5'
          : '"abc"';
  test.each(types.flatMap((one) => types.map((two) => [one, two] as const)))(
    '%s and %s',
    async (one, two) => {
      const use = (type: string) => `message M { int32 x = 1 [(rule) = ${sample(type)}]; }`;
      const found = await diagnosticsOf({
        'a.proto': extending('a', one, use(one)),
        'b.proto': extending('b', two, use(two)),
        'c.proto': `syntax = "proto3";\npackage c;\nimport "b.proto";\nmessage M { int32 x = 1 [(b.rule) = ${sample(two)}]; }`,
      });
      expect(found).toEqual([
        expect.stringMatching(
          /^b\.proto:5:\d+: error: a\.rule extends google\.protobuf\.FieldOptions with number 50001 already \| 50001$/,
        ),
      ]);
    },
  );
});
