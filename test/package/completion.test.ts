/**
 * Tests that an editor's completions for an import of the package contain the entry points for people, and
 * none of those that only generated files or this repository import.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from './pack.ts';

const work = mkdtempSync(join(tmpdir(), 'rdma-rpc-completion-'));

beforeAll(() => {
  const installed = join(work, 'node_modules/rdma-rpc');
  mkdirSync(installed, { recursive: true });
  cpSync(join(root, 'package.json'), join(installed, 'package.json'));
  symlinkSync(join(root, 'dist'), join(installed, 'dist'));
  writeFileSync(join(work, 'package.json'), '{ "type": "module", "dependencies": { "rdma-rpc": "*" } }');
});
afterAll(() => rmSync(work, { recursive: true }));

/** Returns the names that the compiler offers at `|` of a program. */
function offered(program: string): string[] {
  const script = join(root, 'test/package/offered.mjs');
  const done = spawnSync(process.execPath, [script, work, program], { encoding: 'utf8' });
  expect(done.stderr).toBe('');
  return JSON.parse(done.stdout) as string[];
}

test('a path: each entry point for people, and no other', () => {
  const names = offered("import {} from 'rdma-rpc/|';");
  expect(names).toEqual(expect.arrayContaining(['codec', 'json', 'grpc/server', 'grpc/client', 'health']));
  expect(names.filter((name) => /^gen|^details\/|internal|source|modules/.test(name))).toEqual([]);
});

test('modules that only generated files import are not offered by completion', () => {
  expect(offered("import {} from 'rdma-rpc/gen|';")).toEqual([]);
  expect(offered("import {} from 'rdma-rpc/generated/|';")).toEqual([]);
});

test('generated files still find these modules', () => {
  const file = join(work, 'generated.ts');
  writeFileSync(
    file,
    "import { Writer } from 'rdma-rpc/generated/v1';\nexport const made: object = new Writer();\n",
  );
  const program = ts.createProgram([file], {
    module: ts.ModuleKind.NodeNext,
    noEmit: true,
    skipLibCheck: true,
    preserveSymlinks: true,
    types: [],
  });
  const text = ts
    .getPreEmitDiagnostics(program)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '));
  expect(text.filter((each) => each.includes('rdma-rpc/generated'))).toEqual([]);
});
