/**
 * Tests text that tries to break out of its context: comments, JSON names, defaults, file names and package
 * names that would end a comment, a string or an import. The output must load and return the original text.
 * The random texts are seeded, so a failure is reproducible.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import type { MessageType } from 'rdma-rpc/codec';
import { fromJson, toJson } from 'rdma-rpc/json';
import { afterAll, describe, expect, test } from 'vitest';
import { generate } from '../../codegen/index.ts';
import { fieldsOf } from '../../runtime/codec/fields.ts';
import { runs } from '../extent.ts';
import { diagnosticsOf, proto3, workspace } from './workspace.ts';

const seed = 20_261_126;
const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
mkdirSync(join(root, 'gen'), { recursive: true });
const place = mkdtempSync(join(root, 'gen', 'hostile-'));
afterAll(() => rmSync(place, { recursive: true, force: true }));

type Module = Readonly<Record<string, unknown>>;
let made = 0;

/** Loads the module generated from `files[main]`. */
async function load(
  main: string,
  files: Readonly<Record<string, string>>,
  options: { readonly unknownFields?: 'keep' } = {},
): Promise<Module> {
  const directory = workspace(files);
  const out = join(place, String(++made));
  const paths = Object.keys(files).map((path) => join(directory, path));
  await generate({ files: paths, include: [directory], out, ...options });
  return (await import(join(out, main.replace(/\.proto$/, '.rdma.ts')))) as Module;
}
const messageOf = (module: Module, name: string) => module[name] as MessageType<Record<string, unknown>>;

/** Text made of sequences that end or begin something. */
const text = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '*/',
        '/*',
        '//',
        '`',
        '$' + '{x}',
        "'",
        '"',
        '\\',
        '\\u002a/',
        '@deprecated',
        '</script>',
        '-->',
      ),
      fc.constantFrom(
        '\u2028',
        '\u2029',
        '\u0085',
        '\ufeff',
        '\u200b',
        '\t',
        '漢',
        '😀',
        'é',
        '__proto__',
        '%',
        '#',
        ';',
      ),
      fc.string({ unit: 'binary', maxLength: 4 }),
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(''));

/** Returns a string literal, with each character in one of the forms of the language. */
function literalOf(value: string, form: (i: number) => number): string {
  const chars = [...value].map((char, i) => {
    const code = char.codePointAt(0) as number;
    const octets = [...Buffer.from(char, 'utf8')];
    const plain = code >= 32 && !/["\\]/.test(char) && code !== 127;
    switch (form(i) % 5) {
      case 0:
        return octets.map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
      case 1:
        return octets.map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');
      case 2:
        return `\\U${code.toString(16).padStart(8, '0')}`;
      case 3:
        return code < 0x10000
          ? `\\u${code.toString(16).padStart(4, '0')}`
          : `\\U${code.toString(16).padStart(8, '0')}`;
      default:
        return plain ? char : octets.map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
    }
  });
  return `"${chars.join('')}"`;
}

describe('the output can be loaded, and contains the original text', () => {
  test('in comments of every kind, on every element that may have one', async () => {
    const line = text.map((value) => value.replace(/[\n\r]/g, ' '));
    const comment = fc.oneof(
      line.map((value) => `// ${value}`),
      text.map((value) => `/** ${value.replaceAll('*/', '* /').replace(/\*$/, '* ')}*/`),
    );
    const property = fc.asyncProperty(fc.array(comment, { minLength: 9, maxLength: 9 }), async (comments) => {
      const [a, b, c, d, e, f, g, h, i] = comments;
      const source = `syntax = "proto3";\n${a}\npackage t;\n${b}\nmessage A {\n${c}\nint32 x = 1;\n${d}\noneof o {\n${e}\nint32 y = 2;\n}\n}\n${f}\nenum E {\n${g}\nZERO = 0;\n}\n${h}\nservice S {\n${i}\nrpc Get(A) returns (A);\n}\n`;
      const module = await load('a.proto', { 'a.proto': source });
      expect(Object.keys(module)).toEqual(expect.arrayContaining(['A', 'E', 'SDefinition']));
      expect(messageOf(module, 'A').decode(Uint8Array.of(8, 5))).toMatchObject({ x: 5 });
    });
    await fc.assert(property, { seed, numRuns: runs(25) });
  });

  test('in defaults of strings and bytes, in every form of escape', async () => {
    const bytes = fc.uint8Array({ maxLength: 12 });
    const property = fc.asyncProperty(
      text,
      bytes,
      fc.array(fc.nat(), { minLength: 1 }),
      async (value, raw, forms) => {
        const literal = literalOf(value, (i) => forms[i % forms.length] as number);
        const octets = [...raw].map((byte) => `\\${byte.toString(8)}`.padEnd(2)).join('" "');
        const source = `syntax = "proto2";\npackage t;\nmessage A {\noptional string s = 1 [default = ${literal}];\noptional bytes b = 2 [default = "${octets.replaceAll(' "', '"').replaceAll('" "', '""')}"];\n}\n`;
        const { ADefaults } = (await load('a.proto', { 'a.proto': source })) as {
          ADefaults: { s: string; b: Uint8Array };
        };
        expect(ADefaults.s).toBe(value);
        expect([...ADefaults.b]).toEqual([...raw]);
      },
    );
    await fc.assert(property, { seed, numRuns: runs(25) });
  });

  test('in JSON names', async () => {
    const names = fc.uniqueArray(
      text.filter((value) => value !== '' && !/^\[.*\]$|\0/s.test(value) && !/^f\d$/.test(value)),
      { minLength: 1, maxLength: 4 },
    );
    const property = fc.asyncProperty(names, async (jsonNames) => {
      const fields = jsonNames.map(
        (name, i) => `int32 f${i} = ${i + 1} [json_name = ${literalOf(name, () => i + 2)}];`,
      );
      const type = messageOf(
        await load('a.proto', { 'a.proto': proto3(`message A { ${fields.join('\n')} }`) }),
        'A',
      );
      expect(fieldsOf(type).map(({ jsonName }) => jsonName)).toEqual(jsonNames);
      const message = type.create(Object.fromEntries(jsonNames.map((_, i) => [`f${i}`, i + 1])));
      const json = toJson(type, message);
      expect(new Map(Object.entries(json as object))).toEqual(
        new Map(jsonNames.map((name, i) => [name, i + 1])),
      );
      expect(fromJson(type, json)).toEqual(message);
    });
    await fc.assert(property, { seed, numRuns: runs(25) });
  });

  test.each([
    ['spaces and quotes', `it's a "dir"/my file`],
    ['letters that are not ASCII', 'ünï/漢字 😀'],
    ['characters that end a string or begin an expression', '`$' + "{x}`/';drop"],
    ['characters that end a comment', 'a*/b, /*c'],
    ['names of properties that every object has', '__proto__/constructor'],
  ])('files in directories with %s', async (_what, path) => {
    const module = await load(`${path}.proto`, {
      [`${path}.proto`]: `syntax = "proto3";\npackage a.constructor.prototype.then;\nimport ${JSON.stringify(`${path}2.proto`)};\nmessage A { B b = 1; }`,
      [`${path}2.proto`]:
        'syntax = "proto3";\npackage a.constructor.prototype.then;\nmessage B { int32 x = 1; }',
    });
    const type = messageOf(module, 'A');
    expect(type.typeName).toBe('a.constructor.prototype.then.A');
    expect(type.decode(type.encode({ b: { x: 3 } }))).toEqual({ b: { x: 3 } });
  });
});

describe('fields become variables of generated functions under names without another meaning there', () => {
  const names =
    `abstract arguments as async await break case class const default delete enum eval export extends false function get if import in instanceof
    interface let module new null of package private return static super switch this throw true try typeof undefined var void while with yield
    m writer at limit depth field bytes i start wide init value each key keys map held stop behind tag source end n o1 v1 v2
    Infinity NaN Number Object Uint8Array __proto__ constructor hasOwnProperty toString _ _1 x2`.split(/\s+/);
  /** A field of each kind with the number `i`, and a value for it. */
  const kinds: readonly [type: string, value: (i: number) => unknown][] = [
    ['int32', (i) => i],
    ['string', (i) => `text ${i}`],
    ['repeated string', (i) => ['', `${i}`]],
    ['map<string, string>', (i) => ({ a: `${i}` })],
    ['Other', (i) => ({ x: i })],
    ['repeated Other', (i) => [{ x: i }, { x: 0 }]],
    ['repeated int64', (i) => [BigInt(-i)]],
    ['optional bytes', (i) => Uint8Array.of(i)],
    ['double', (i) => i / 2],
    ['bool', () => true],
  ];
  const cases = kinds.flatMap((_, shift) =>
    ([undefined, 'keep'] as const).map((unknownFields) => [shift, unknownFields] as const),
  );

  test.each(cases)('kinds from %i, unknown fields: %s', async (shift, unknownFields) => {
    const kindOf = (i: number) => kinds[(i + shift) % kinds.length]!;
    const fields = names.map((name, i) => `${kindOf(i)[0]} ${name} = ${i + 1};`);
    const body = `message A {\n${fields.join('\n')}\n}\nmessage Other { int32 x = 1; }\n`;
    const oneofs = names.map(
      (name, i) => `message O${i} { oneof ${name} { string a = 1; int32 ${name}2 = 2; Other b = 3; } }`,
    );
    const source = { 'a.proto': proto3(body + oneofs.join('\n')) };
    const module = await load('a.proto', source, unknownFields === undefined ? {} : { unknownFields });
    const type = messageOf(module, 'A');
    const keys = Object.keys(type.create()).filter((key) => key !== '$unknownFields');
    expect(keys).toHaveLength(names.length);
    const message = Object.fromEntries(keys.map((key, i) => [key, kindOf(i)[1](i)]));
    expect(type.decode(type.encode(message))).toEqual(message);
    expect(type.create(message)).toEqual(message);
    expect(type.encode(type.create(message))).toEqual(type.encode(message));
    for (const i of names.keys()) {
      const choice = messageOf(module, `O${i}`);
      const [key = ''] = Object.keys(choice.create());
      for (const value of [
        { case: 'a', value: 'x' },
        { case: 'b', value: { x: 5 } },
      ]) {
        expect(choice.decode(choice.encode({ [key]: value }))).toEqual({ [key]: value });
        expect(choice.create({ [key]: value })).toEqual({ [key]: value });
      }
    }
  });
});

test('a line break in the name of a file ends no comment', async () => {
  const directory = workspace({ 'x\nalert(1)\u2028/a.proto': proto3('message A {}') });
  const { outputs } = await generate({
    files: [join(directory, 'x\nalert(1)\u2028/a.proto')],
    include: [directory],
  });
  expect(outputs[0]?.text.match(/^.*alert\(.*$/gm)).toEqual([
    expect.stringMatching(/^\/\/ Generated by .* from x alert\(1\) \/a\.proto\. Do not edit\.$/),
    '/** Descriptor of x alert(1) /a.proto, for reflection. */',
  ]);
});

test.each([
  ['a letter that is not ASCII', 'message Ä {}', 'a.proto:3:9: error: '],
  ['a field', 'message A { int32 größe = 1; }', 'a.proto:3:21: error: '],
  ['an invisible character', 'message A\u200b {}', 'a.proto:3:10: error: '],
  ['an emoji', 'enum 😀 { Z = 0; }', 'a.proto:3:6: error: '],
  ['NUL', 'message A { \0 }', 'a.proto:3:13: error: '],
])('names are ASCII: %s is an error with its position', async (_what, body, start) => {
  const [first] = await diagnosticsOf({ 'a.proto': proto3(body) });
  expect(first?.startsWith(start)).toBe(true);
});
