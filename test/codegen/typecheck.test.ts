/** Generated code passes the compiler in its strictest mood, as ESM that can be erased, with and without our own settings. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { globSync } from 'tinyglobby';
import { expect, onTestFinished, test } from 'vitest';
import { generate } from '../../codegen/index.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** Uses of the generated types that must compile, and (`@ts-expect-error`) uses that must not. */
const uses = `
import { Colour, type ColourNames, Oneofs, type OneofsInit, Scalars, type ScalarsInit, Tree } from './everything.rdma.ts';
import { DocsDefinition, type DocsClient, type DocsHandlers, Old } from './documented.rdma.ts';
import type { MessageType, ServiceDefinition } from 'rdma-rpc/codec';

const init: ScalarsInit = { fInt32: 5, fInt64: 5n, fEnum: Colour.COLOUR_RED, fMessage: {} };
const decoded: Scalars = Scalars.decode(Scalars.encode(init));
export const again: Uint8Array = Scalars.encode(decoded);
export const unknownValue: Colour = 42;
export const type: MessageType<Scalars, ScalarsInit> = Scalars;
export const service: ServiceDefinition = DocsDefinition;
export const path: 'corpus.documented.Docs/Read' = DocsDefinition.methods.read.path;
export const names: (keyof typeof ColourNames)[] = [];

export function describe(message: Oneofs): string {
  switch (message.choice.case) {
    case 'number':
      return message.choice.value.toFixed();
    case 'text':
      return message.choice.value;
    case undefined:
      return 'nothing';
    default:
      return typeof message.choice.value;
  }
}
const chosen: OneofsInit = { choice: { case: 'text', value: 'x' } };
export const absent: Tree | undefined = Tree.create().next;
export const handlers: DocsHandlers = { read: () => Old.create(), write: async (request, context) => ({ leading: String(request.depth), ...(context ? {} : {}) }) };
export const call = (client: DocsClient): Promise<Old> => client.read(chosen.before === undefined ? {} : { leading: 'x' }, {});
// @ts-expect-error a string is not an int32
export const wrong: ScalarsInit = { fInt32: '5' };
// @ts-expect-error the value does not belong to the case
export const mixed: OneofsInit = { choice: { case: 'number', value: 'x' } };
// @ts-expect-error 64-bit integers are bigint
export const narrow: ScalarsInit = { fInt64: 5 };
`;

test('the corpus compiles', { timeout: 120_000 }, async () => {
  mkdirSync(join(root, 'gen'), { recursive: true });
  const directory = mkdtempSync(join(root, 'gen', 'typecheck-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const protos = join(root, 'test/codec/protos');
  await generate({
    files: globSync('**/*.proto', { cwd: protos, absolute: true }),
    include: [protos],
    out: directory,
  });
  writeFileSync(join(directory, 'uses.ts'), uses);
  const config = {
    extends: '../../tsconfig.json',
    compilerOptions: {
      noEmit: true,
      rootDir: '../..',
      exactOptionalPropertyTypes: true,
      noUnusedParameters: true,
      noImplicitReturns: true,
      noPropertyAccessFromIndexSignature: true,
      // Of the runtime's own sources only what our settings ask for.
      skipLibCheck: true,
    },
    include: ['.'],
  };
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(config));
  let output = '';
  try {
    execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', directory], {
      encoding: 'utf8',
    });
  } catch (error) {
    output = (error as { stdout: string }).stdout;
  }
  // Sources of the runtime are checked by their own build, with its settings.
  expect(
    output.split('\n').filter((line) => line.includes('typecheck-') || line.startsWith('error')),
  ).toEqual([]);
});
