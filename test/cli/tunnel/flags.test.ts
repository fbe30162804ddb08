/** Tests the files that the flags of `rdma-rpc tunnel --serve` name. */
import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newCounts } from '../../../cli/tunnel/counts.ts';
import { listeningEnd, servingEnd } from '../../../cli/tunnel/end.ts';
import { channelOf, serverOf } from '../../../cli/tunnel/flags.ts';
import { Authority } from '../../security/certificates.ts';
import { dialTo, program } from './ends.ts';

const authority = new Authority();
const { cert, key } = authority.issue({ addresses: ['127.0.0.1'] });

let folder: string;
const file = (name: string): string => join(folder, name);
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tunnel-flags-'));
  const cipher = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'abc' } as const;
  const encrypted = String(createPrivateKey(key).export(cipher));
  const texts = { ca: authority.ca, cert, encrypted, passphrase: 'abc\n', wrong: 'abd\n' };
  for (const [name, content] of Object.entries(texts)) writeFileSync(file(name), content);
});
afterAll(() => rmSync(folder, { recursive: true }));

const common = { allow: [], fabric: [], grace: 0, credential: [] };
const served = { ...common, serve: '127.0.0.1:0', to: '127.0.0.1:1' };
const servedWith = (passphraseFile: string) => ({
  ...served,
  cert: file('cert'),
  key: file('encrypted'),
  passphraseFile: file(passphraseFile),
});

test('the key of a serving end may be encrypted, with its passphrase in a file', async () => {
  const hello = await program((socket) => socket.end('hello'));
  const options = serverOf(servedWith('passphrase'));
  const far = await servingEnd('127.0.0.1:0', hello.address, options, newCounts(), () => undefined);
  const channel = channelOf({ ...common, listen: '127.0.0.1:0', to: far.bound, ca: file('ca') });
  const near = await listeningEnd('127.0.0.1:0', far.bound, channel, newCounts(), () => undefined);
  expect(await text(dialTo(near.bound))).toBe('hello');
  await Promise.all([near.drain(), far.drain()]);
  await hello.close();
});

test('a wrong passphrase of a serving end, and a passphrase without a key, are refused', () => {
  expect(() => serverOf(servedWith('wrong'))).toThrow(/^--key .+: the passphrase does not decrypt the key/);
  const passphraseFile = file('passphrase');
  expect(() => serverOf({ ...served, passphraseFile })).toThrow('--passphrase-file needs --key');
});
