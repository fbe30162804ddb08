/**
 * Tests that the public surface equals public-api.txt. To change it on purpose, run `npm run build && npx
 * vitest run test/api -u`, and read the difference.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { globSync } from 'tinyglobby';
import { Node } from 'ts-morph';
import { expect, test } from 'vitest';
import { publicApi, report, root } from './report.ts';

const api = publicApi();

function members(name: string): string[] {
  const [declaration] = api.get('.')?.get(name) ?? [];
  if (!Node.isInterfaceDeclaration(declaration)) throw new Error(`${name} is no interface`);
  const names = declaration
    .getType()
    .getProperties()
    .map((each) => (each.getName().startsWith('__@') ? '[Symbol.asyncDispose]' : each.getName()));
  return [...new Set(names)].sort();
}

test('equals the report', async () => {
  await expect(report(api)).toMatchFileSnapshot('public-api.txt');
});

/**
 * The classes that applications make, catch, or write codecs with. Every other class is public only as an
 * interface.
 */
const classes = {
  made: [
    '. ContextValues',
    '. Metadata',
    '. RpcError',
    './verbs Completions',
    './verbs RecvBatch',
    './verbs SendBatch',
  ],
  // These exports are classes, as in node:net, because programs use `instanceof` with them.
  sockets: ['./socket Socket', './socket SocketServer'],
  caught: [
    './codec CodecError',
    './codegen GenerateError',
    './codegen MissingPackageError',
    './verbs VerbsError',
  ],
  codecs: [
    './codec Writer',
    './codec Source',
    './generated/*1 Method',
    './generated/*1 Writer',
    './generated/*1 Source',
  ],
};

test('contains nothing that is marked as internal', () => {
  const declarations = globSync('dist/{runtime,codegen}/**/*.d.ts', { cwd: root });
  expect(declarations.length).toBeGreaterThan(50);
  const marked = declarations.filter((file) => readFileSync(join(root, file), 'utf8').includes('@internal'));
  expect(marked).toEqual([]);
});

test('contains exactly the listed classes', () => {
  const found = [...api].flatMap(([entry, exported]) =>
    [...exported].flatMap(([name, [declaration]]) =>
      Node.isClassDeclaration(declaration) ? `${entry} ${name}` : [],
    ),
  );
  expect(found.sort()).toEqual(Object.values(classes).flat().sort());
});

test('channels have what users need, and no more', () => {
  expect(members('Channel')).toEqual([
    '[Symbol.asyncDispose]',
    'address',
    'addresses',
    'close',
    'fabric',
    'off',
    'on',
    'once',
    'ready',
    'session',
    'state',
    'totals',
  ]);
});

test('servers have what users need, and no more', () => {
  expect(members('Server')).toEqual([
    '[Symbol.asyncDispose]',
    'add',
    'listen',
    'onShutdown',
    'scope',
    'services',
    'sessionCount',
    'sessions',
    'shutdown',
    'stopping',
    'use',
  ]);
});
