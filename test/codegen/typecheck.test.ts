/**
 * Tests that generated code passes the compiler in its strictest mode, as ESM with erasable syntax, with our
 * settings and without them.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { globSync } from 'tinyglobby';
import { describe, expect, onTestFinished, test } from 'vitest';
import { generate } from '../../codegen/index.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/**
 * Uses of the generated types that must compile, and uses marked `@ts-expect-error` that must not compile.
 */
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
export const method: 'corpus.documented.Docs' = DocsDefinition.fullName;
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

/**
 * Removes the line that excludes generated code from other projects' checks, because the code has to pass
 * them.
 */
function checkable(text: string): string {
  expect(text).toContain('\n// @ts-nocheck\n');
  return text.replace('// @ts-nocheck\n', '');
}

/** Folders with .proto files, each with whether its files are the well-known types. */
const folders = [
  ['test/codec/protos', false],
  ['test/codegen/protos', false],
  ['proto', true],
] as const;

/** Returns the compiler's errors for the output of all folders and for its uses. */
async function errorsOf(target: 'ts' | 'js', settings: object): Promise<string[]> {
  mkdirSync(join(root, 'gen'), { recursive: true });
  const directory = mkdtempSync(join(root, 'gen', 'typecheck-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  for (const [folder, emitWellKnownTypes] of folders) {
    const include = join(root, folder);
    const files = globSync('**/*.proto', { cwd: include, absolute: true });
    const { outputs } = await generate({ files, include: [include], emitWellKnownTypes, target });
    for (const { path, text } of outputs) {
      const file = join(directory, folder, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, path.endsWith('.d.ts') ? text : checkable(text));
    }
  }
  writeFileSync(join(directory, folders[0][0], 'uses.ts'), uses.replaceAll('.rdma.ts', `.rdma.${target}`));
  const config = {
    extends: '../../tsconfig.json',
    compilerOptions: {
      noEmit: true,
      rootDir: '../..',
      exactOptionalPropertyTypes: true,
      noUnusedParameters: true,
      noImplicitReturns: true,
      noPropertyAccessFromIndexSignature: true,
      ...settings,
    },
    include: ['.'],
  };
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(config));
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const { stdout } = spawnSync(process.execPath, [tsc, '-p', directory], { encoding: 'utf8' });
  // The runtime's sources are left out, because their own build checks them with its settings.
  return stdout.split('\n').filter((line) => line.includes('typecheck-') || line.startsWith('error'));
}

describe('generated code passes the compiler', { timeout: 240_000 }, () => {
  // Isolated declarations are checked even if a file's own comments say otherwise. The type of each export
  // must be explicit, so that it does not depend on other files.
  test('as TypeScript', async () => {
    expect(await errorsOf('ts', { skipLibCheck: true, isolatedDeclarations: true })).toEqual([]);
  });

  test('as JavaScript with declarations', async () => {
    expect(await errorsOf('js', { skipLibCheck: false, types: [] })).toEqual([]);
  });
});
