/**
 * Tests `enums: 'closed'`. The tests check the compiler's errors for programs, and that messages are the
 * same.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MessageType } from 'rdma-rpc/codec';
import ts from 'typescript';
import { expect, onTestFinished, test } from 'vitest';
import { generate } from '../../codegen/index.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

const proto = `syntax = "proto3";
enum State { NEW = 0; PAID = 1; }
enum Other { NONE = 0; MANY = 7; }
message Order { State state = 1; repeated State states = 2; }
`;
const program = (extension: string) => `import { Order, Other, State } from './a.rdma.${extension}';
export function nameOf(state: State): string {
  switch (state) {
    case State.NEW: return 'new';
    case State.PAID: return 'paid';
  }
}
export const other = Order.create({ state: Other.MANY });
export const number = Order.create({ state: 5 });
export const right = Order.create({ state: State.PAID, states: [State.NEW] });
`;

/** Returns the lines of the program that the compiler reports, and the module. */
async function compiled(target: 'ts' | 'js', enums?: 'open' | 'closed') {
  mkdirSync(join(root, 'gen'), { recursive: true });
  const directory = mkdtempSync(join(root, 'gen', 'enums-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  writeFileSync(join(directory, 'a.proto'), proto);
  const file = join(directory, 'program.ts');
  writeFileSync(file, program(target));
  await generate({ files: [join(directory, 'a.proto')], out: directory, target, ...(enums && { enums }) });
  const checked = ts.createProgram([file], {
    strict: true,
    noEmit: true,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
    allowImportingTsExtensions: true,
    customConditions: ['rdma-rpc-source'],
    types: [],
    skipLibCheck: true,
  });
  const source = checked.getSourceFile(file);
  const lines = checked
    .getSemanticDiagnostics(source)
    .map(({ start = 0 }) => (source?.getLineAndCharacterOfPosition(start).line ?? 0) + 1);
  const module = (await import(join(directory, `a.rdma.${target}`))) as {
    Order: MessageType<{ state: number }>;
  };
  return { lines, Order: module.Order };
}

test.each(['ts', 'js'] as const)(
  'closed, target %s: a switch is exhaustive, and no other value passes',
  async (target) => {
    const { lines, Order } = await compiled(target, 'closed');
    expect(lines).toEqual([8, 9]);
    // This is a number that only newer peers know.
    expect(Order.decode(Uint8Array.of(8, 9)).state).toBe(9);
  },
);

test('open, the default: every number passes, so no switch is exhaustive', async () => {
  expect((await compiled('ts')).lines).toEqual([2]);
});
