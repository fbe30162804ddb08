/**
 * Tests messages and enums with the name of a JavaScript or TypeScript global. A compiler finds the globals
 * that generated code uses, and none of them may have another meaning there.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { globSync } from 'tinyglobby';
import ts from 'typescript';
import { describe, expect, onTestFinished, test } from 'vitest';
import { generate } from '../../codegen/index.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/**
 * Generates into a directory in which imports of the package resolve, without the comment that disables type
 * checks.
 */
async function generated(
  files: readonly string[],
  include: string,
  target: 'ts' | 'js' = 'ts',
): Promise<string[]> {
  mkdirSync(join(root, 'gen'), { recursive: true });
  const directory = mkdtempSync(join(root, 'gen', 'globals-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const { outputs } = await generate({ files, include: [include], target });
  return outputs.map(({ path, text }) => {
    const file = join(directory, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text.replace('// @ts-nocheck\n', ''));
    return file;
  });
}

interface Seen {
  /** The names that the files use and that the language or the platform declares. */
  readonly globals: ReadonlySet<string>;
  readonly errors: readonly string[];
}

/** Returns whether the identifier is a use of a global, and not the name of a property. */
function isUse(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (ts.isQualifiedName(parent)) return parent.left === node;
  if (ts.isBindingElement(parent)) return parent.propertyName !== node;
  return !('name' in parent && parent.name === node);
}

function look(files: readonly string[]): Seen {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const program = ts.createProgram([...files], { ...options, noEmit: true });
  const checker = program.getTypeChecker();
  const globals = new Set<string>();
  for (const file of files) {
    const source = program.getSourceFile(file);
    const visit = (node: ts.Node): void => {
      if (ts.isIdentifier(node) && isUse(node)) {
        const declarations = checker.getSymbolAtLocation(node)?.declarations ?? [];
        const outside = declarations.every((each) =>
          /node_modules\/(?:typescript|@types)\//.test(each.getSourceFile().fileName),
        );
        if (outside && node.text !== 'undefined' && declarations.length > 0) globals.add(node.text);
      }
      ts.forEachChild(node, visit);
    };
    if (source !== undefined) visit(source);
  }
  const errors = files.flatMap((file) => {
    const source = program.getSourceFile(file);
    return [...program.getSemanticDiagnostics(source), ...program.getSyntacticDiagnostics(source)].map(
      ({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '),
    );
  });
  return { globals, errors };
}

/** One declaration of each kind for which generated code could need a global. */
const everything = `
message All {
  required int32 needed = 1;
  optional double nan = 2 [default = nan];
  optional float most = 3 [default = inf];
  optional double least = 4 [default = -inf];
  optional bytes raw = 5 [default = "x"];
  optional int64 text = 6 [jstype = JS_STRING];
  optional fixed64 number = 7 [jstype = JS_NUMBER];
  repeated sint64 texts = 8 [jstype = JS_STRING];
  repeated All list = 9;
  map<string, bytes> by_text = 10;
  map<int32, All> by_number = 11;
  map<bool, string> by_bool = 12;
  map<int64, double> by_wide = 13;
  oneof one { string word = 14; All all = 15; bytes bits = 16; }
  optional group Inside = 17 { optional string x = 1; }
  extensions 100 to 199;
}
extend All { optional All extra = 100; repeated bytes more = 101; }
service Calls {
  rpc Unary(All) returns (All);
  rpc Down(All) returns (stream All);
  rpc Up(stream All) returns (All);
  rpc Both(stream All) returns (stream All);
}`;

/** The globals of any JavaScript engine, and the types that TypeScript provides. */
const allGlobals = [
  ...Object.getOwnPropertyNames(globalThis),
  ...`AsyncGenerator AsyncIterable AsyncIterator Awaited Exclude Extract Generator Iterable Iterator NonNullable Omit Parameters Partial Pick PromiseLike PropertyKey
  Readonly ReadonlyArray ReadonlyMap ReadonlySet Record Required ReturnType Uppercase`.split(/\s+/),
].filter((name) => /^[A-Za-z_]\w*$/.test(name));

describe('names of globals', { timeout: 240_000 }, () => {
  const shadowing = (kind: (name: string) => string) =>
    `syntax = "proto2";\npackage t;\n${[...new Set(allGlobals)].map(kind).join('\n')}\n${everything}`;
  const write = (text: string): [string[], string] => {
    mkdirSync(join(root, 'gen'), { recursive: true });
    const directory = mkdtempSync(join(root, 'gen', 'globals-protos-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    writeFileSync(join(directory, 'a.proto'), text);
    return [[join(directory, 'a.proto')], directory];
  };

  test('"everything" uses all globals that any file uses', async () => {
    const used = new Set<string>();
    for (const folder of ['test/codec/protos', 'test/codegen/protos']) {
      const include = join(root, folder);
      const files = await generated(globSync('**/*.proto', { cwd: include, absolute: true }), include);
      for (const name of look(files).globals) used.add(name);
    }
    const { globals } = look(await generated(...write(`syntax = "proto2";\npackage t;\n${everything}`)));
    expect([...used].filter((name) => !globals.has(name))).toEqual([]);
    expect(globals.size).toBeGreaterThan(5);
  });

  test.each([
    ['messages', (name: string) => `message ${name} { optional double d = 1 [default = inf]; }`],
    ['enums', (name: string) => `enum ${name} { V${name} = 0; }`],
    [
      'extensions',
      (name: string) => `extend All { optional int32 ${name} = ${100 + allGlobals.indexOf(name)}; }`,
    ],
  ])('%s with these names shadow nothing', async (_what, kind) => {
    const plain = look(await generated(...write(`syntax = "proto2";\npackage t;\n${everything}`)));
    const text = shadowing(kind)
      .replace('100 to 199', '100 to 1999')
      .replace('extra = 100', 'extra = 1998')
      .replace('more = 101', 'more = 1999');
    for (const target of ['ts', 'js'] as const) {
      const files = await generated(...write(text), target);
      const { globals, errors } = look(files);
      expect(errors).toEqual([]);
      if (target === 'ts') expect([...plain.globals].filter((name) => !globals.has(name))).toEqual([]);
    }
  });

  test('a message Number has its defaults', async () => {
    const [file = ''] = await generated(
      ...write(shadowing((name) => `message ${name} { optional double d = 1 [default = inf]; }`)),
    );
    const module = (await import(file)) as { Number$Defaults: { d: number }; AllDefaults: { nan: number } };
    expect(module.AllDefaults.nan).toBeNaN();
    expect(
      Object.entries(module)
        .filter(([name]) => name.startsWith('Number'))
        .map(([name]) => name),
    ).toEqual(['Number$', 'Number$Defaults']);
    expect(module.Number$Defaults.d).toBe(Number.POSITIVE_INFINITY);
  });
});
