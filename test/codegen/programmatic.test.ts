/** Tests `generate()` of `rdma-rpc/codegen`, on which the command line and build tools are based. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatDiagnostic, GenerateError, type GenerateOptions, generate } from 'rdma-rpc/codegen';
import { describe, expect, test } from 'vitest';
import { proto3, workspace } from './workspace.ts';

const files = {
  'shop/order.proto': proto3('import "shop/money.proto";\nmessage Order { Money total = 1; }'),
  'shop/money.proto': proto3('message Money { int64 cents = 1; }'),
};

function options(directory: string, more: Partial<GenerateOptions> = {}): GenerateOptions {
  return { files: [join(directory, 'shop/order.proto')], include: [directory], ...more };
}

describe('generate() returns', () => {
  test('the texts of the requested files and of their imports, and the sources that were read; writes nothing without `out`', async () => {
    const directory = workspace(files);
    const { outputs, written, sources, warnings } = await generate(options(directory));
    expect(outputs.map(({ path }) => path).sort()).toEqual(['shop/money.rdma.ts', 'shop/order.rdma.ts']);
    expect(written).toEqual([]);
    const read = sources.filter((path) => path.startsWith(directory)).sort();
    expect(read).toEqual(['shop/money.proto', 'shop/order.proto'].map((path) => join(directory, path)));
    expect(warnings).toEqual([]);
  });

  test('the same texts and the changed files when it writes to `out`', async () => {
    const directory = workspace(files);
    const out = join(directory, 'out');
    const first = await generate(options(directory, { out }));
    expect(first.written).toEqual(first.outputs.map(({ path }) => join(out, path)));
    for (const { path, text } of first.outputs) expect(readFileSync(join(out, path), 'utf8')).toBe(text);
    writeFileSync(join(directory, 'shop/money.proto'), proto3('message Money { uint64 cents = 1; }'));
    const second = await generate(options(directory, { out }));
    expect(second.written).toEqual([join(out, 'shop/money.rdma.ts')]);
  });

  test('the files that would change with `check`, and changes nothing', async () => {
    const directory = workspace(files);
    const out = join(directory, 'out');
    const { written } = await generate(options(directory, { out, check: true }));
    expect(written).toHaveLength(2);
    expect(existsSync(out)).toBe(false);
    await generate(options(directory, { out }));
    expect((await generate(options(directory, { out, check: true }))).written).toEqual([]);
  });

  test('warnings with the output', async () => {
    const directory = workspace({ 'a.proto': 'message A {}' });
    const { outputs, warnings } = await generate({ files: [join(directory, 'a.proto')] });
    expect(outputs).toHaveLength(1);
    expect(warnings).toMatchObject([{ severity: 'warning', line: 1, column: 1, text: 'message' }]);
  });
});

describe('generate() throws', () => {
  test('GenerateError with all errors, as data and as text', async () => {
    const directory = workspace({ 'a.proto': proto3('message A {\n  X x = 1;\n  Y y = 2;\n}') });
    const error = await generate({ files: [join(directory, 'a.proto')] }).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(GenerateError);
    const { diagnostics } = error as GenerateError;
    expect(diagnostics).toMatchObject([
      {
        severity: 'error',
        line: 4,
        column: 3,
        text: 'X',
        message: 'unknown type X',
        sourceLine: '  X x = 1;',
      },
      {
        severity: 'error',
        line: 5,
        column: 3,
        text: 'Y',
        message: 'unknown type Y',
        sourceLine: '  Y y = 2;',
      },
    ]);
    expect((error as Error).message).toBe(diagnostics.map(formatDiagnostic).join('\n'));
  });

  test('before it writes any file', async () => {
    const directory = workspace({ ...files, 'bad.proto': 'message {' });
    const out = join(directory, 'out');
    const both = [join(directory, 'shop/order.proto'), join(directory, 'bad.proto')];
    await expect(generate({ files: both, include: [directory], out })).rejects.toThrow(GenerateError);
    expect(existsSync(out)).toBe(false);
  });
});

test('concurrent calls do not affect each other', async () => {
  const directories = Array.from({ length: 8 }, (_, i) =>
    workspace({ 'a.proto': proto3(`message A${i} { int32 x = ${i + 1}; }`) }),
  );
  const all = await Promise.all(directories.map((each) => generate({ files: [join(each, 'a.proto')] })));
  expect(all.map(({ outputs }) => /interface (A\d) /.exec(outputs[0]?.text ?? '')?.[1])).toEqual(
    directories.map((_, i) => `A${i}`),
  );
});
