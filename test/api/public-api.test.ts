/** The public surface is what public-api.txt says. A change on purpose: `npm run build && npx vitest run test/api -u`, and read the difference. */
import { Node } from 'ts-morph';
import { expect, test } from 'vitest';
import { publicApi, report } from './report.ts';

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

test('is as reported', async () => {
  await expect(report(api)).toMatchFileSnapshot('public-api.txt');
});

/** What applications make, catch, or write codecs with. Everything else that has a class is seen as an interface, or as a type that only we make. */
const classes = {
  made: ['. ContextValues', '. Metadata', '. RpcError'],
  caught: ['./codec CodecError', './codegen GenerateError', './codegen MissingPackageError'],
  codecs: [
    './codec Sink',
    './codec Source',
    './generated/v1 Method',
    './generated/v1 Sink',
    './generated/v1 Source',
  ],
  given: [
    './workers WorkerGroup',
    './health Health',
    './reflection Reflection',
    './reverse Peer',
    './reverse Peers',
    './reverse ReverseServer',
  ],
};

test('has the classes that are listed here', () => {
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
  ]);
});

test('servers have what users need, and no more', () => {
  expect(members('Server')).toEqual([
    '[Symbol.asyncDispose]',
    'add',
    'listen',
    'onShutdown',
    'services',
    'sessionCount',
    'sessions',
    'shutdown',
    'stopping',
    'use',
    'with',
  ]);
});
