/**
 * Tests that the target `js` writes the code of the target `ts` without its types, and declarations without
 * code.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, transform } from 'esbuild';
import { globSync } from 'tinyglobby';
import ts from 'typescript';
import { describe, expect, onTestFinished, test } from 'vitest';
import { generate } from '../../codegen/index.ts';
import type { MessageType, ServiceDefinition } from '../../runtime/codec/index.ts';
import { proto3, workspace } from './workspace.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** Returns the outputs for all schemas of the generator's tests, by path without extension. */
async function outputs(target: 'ts' | 'js'): Promise<Map<string, string>> {
  const result = new Map<string, string>();
  for (const folder of ['test/codec/protos', 'test/codegen/protos']) {
    const include = join(root, folder);
    const files = globSync('**/*.proto', { cwd: include, absolute: true });
    const generated = await generate({ files, include: [include], target, importExtension: 'js' });
    for (const { path, text } of generated.outputs) result.set(join(folder, path), text);
  }
  return result;
}

/**
 * Returns the output of the compiler, which has removed types and comments and applied its own formatting.
 */
function erased(text: string): string {
  const compilerOptions = {
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.ESNext,
    verbatimModuleSyntax: true,
    removeComments: true,
  };
  return ts.transpileModule(text, { compilerOptions }).outputText;
}

describe('the target js', { timeout: 120_000 }, () => {
  test('is the target ts without types', async () => {
    const [typescript, javascript] = await Promise.all([outputs('ts'), outputs('js')]);
    expect([...javascript.keys()].sort()).toEqual(
      [...typescript.keys()]
        .flatMap((path) => [path.replace(/ts$/, 'd.ts'), path.replace(/ts$/, 'js')])
        .sort(),
    );
    for (const [path, text] of typescript) {
      const code = javascript.get(path.replace(/ts$/, 'js')) ?? '';
      // A module from which only types were used is not imported.
      const unused = (line: string) => {
        const alias = /^import \* as (\$\d+) /.exec(line)?.[1];
        return alias !== undefined && !code.includes(`${alias}.`);
      };
      const lines = erased(text)
        .split('\n')
        .filter((line) => !unused(line));
      expect(erased(code), path).toBe(lines.join('\n'));
    }
  });

  test('has only JavaScript in the one file, and no code in the other', async () => {
    for (const [path, text] of await outputs('js')) {
      const declarations = path.endsWith('.d.ts');
      // The conversion throws for types in JavaScript.
      const { code } = await transform(text, { loader: declarations ? 'ts' : 'js' });
      if (declarations) expect(code.replaceAll(/^export \* from "[^"]+";\n/gm, ''), path).toBe('');
    }
  });

  /** Writes the files inside the project, where the output resolves the package by its name. */
  async function written(body: string): Promise<string> {
    const directory = workspace({ 'a.proto': proto3(body) });
    mkdirSync(join(root, 'gen'), { recursive: true });
    const out = mkdtempSync(join(root, 'gen', 'target-'));
    onTestFinished(() => rmSync(out, { recursive: true, force: true }));
    await generate({ files: [join(directory, 'a.proto')], out, target: 'js' });
    return join(out, 'a.rdma.js');
  }

  test('is loaded and works', async () => {
    const file = await written(
      'message A { int64 x = 1; repeated A many = 2; map<string, A> named = 3; oneof o { bytes raw = 4; string text = 5; } }\nservice S { rpc Get(A) returns (A); }',
    );
    const module = (await import(pathToFileURL(file).href)) as {
      A: MessageType<object>;
      SDefinition: ServiceDefinition;
    };
    const value = { x: -5n, many: [{ x: 1n }], named: { k: { x: 2n } }, o: { case: 'text', value: 'é' } };
    expect(module.A.decode(module.A.encode(value))).toEqual(module.A.create(value));
    expect(Object.values(module.SDefinition.methods)[0]?.input).toBe(module.A);
  });

  test('lets bundlers drop unused code', async () => {
    const file = await written(
      'message Used { int32 x = 1; }\nmessage Unused { Used used = 1; }\nenum Level { LOW = 0; }',
    );
    const { outputFiles } = await build({
      stdin: { contents: `export { Used } from './a.rdma.js';`, resolveDir: dirname(file) },
      bundle: true,
      write: false,
      format: 'esm',
      external: ['rdma-rpc/generated/v1'],
    });
    const text = outputFiles[0]?.text ?? '';
    expect(text).toContain('t.Used');
    expect(text).not.toContain('Unused');
    expect(text).not.toContain('Level');
    expect(text).not.toContain('fileDescriptor');
  });

  test('imports .js, and refuses the import extension ts', async () => {
    const directory = workspace({
      'a.proto': proto3('import "b.proto";\nmessage A { B b = 1; }'),
      'b.proto': proto3('message B {}'),
    });
    const files = [join(directory, 'a.proto')];
    const { outputs } = await generate({ files, target: 'js' });
    const [code, types] = outputs.filter(({ path }) => path.startsWith('a.'));
    expect(code?.text).toContain("import * as $1 from './b.rdma.js';");
    expect(types?.text).toContain("import type * as $1 from './b.rdma.js';");
    await expect(generate({ files, target: 'js', importExtension: 'ts' })).rejects.toThrow(
      new TypeError('the target js imports .js; the import extension ts is for the target ts'),
    );
  });
});

describe('the import extension none', () => {
  test('omits only the extension of each import, and a bundler resolves all of them', async () => {
    const directory = workspace({
      'a.proto': proto3('import "b.proto";\nimport "deep/c.ts.proto";\nmessage A { B b = 1; C c = 2; }'),
      'b.proto': proto3('import public "deep/d.proto";\nmessage B { D d = 1; }'),
      'deep/c.ts.proto': proto3('import "b.proto";\nmessage C { B b = 1; }'),
      'deep/d.proto': proto3('message D {}'),
    });
    const files = ['a.proto', 'b.proto', 'deep/c.ts.proto', 'deep/d.proto'].map((file) =>
      join(directory, file),
    );
    const made = async (importExtension: 'ts' | 'none') =>
      (await generate({ files, include: [directory], importExtension })).outputs;
    const [withTs, without] = await Promise.all([made('ts'), made('none')]);
    const relative = /from '(\.[^']+)'/g;
    const known = new Set(without.map(({ path }) => join('/out', path)));
    let imports = 0;
    for (const [i, { path, text }] of without.entries()) {
      expect(text).toBe(
        withTs[i]!.text.replace(relative, (_, name: string) => `from '${name.replace(/\.ts$/, '')}'`),
      );
      for (const [, name] of text.matchAll(relative)) {
        ++imports;
        const { resolvedModule } = ts.resolveModuleName(
          name!,
          join('/out', path),
          { moduleResolution: ts.ModuleResolutionKind.Bundler, module: ts.ModuleKind.ESNext },
          { fileExists: (file) => known.has(file), readFile: () => undefined },
        );
        expect(known).toContain(resolvedModule?.resolvedFileName);
      }
    }
    expect(imports).toBeGreaterThan(4);
  });
});
