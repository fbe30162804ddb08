/** Tests TLS without a connection: unusable options, and the identity in a certificate. */
import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type ChannelTls, createChannel, createServer, type ServerTls, tlsFiles } from 'rdma-rpc';
import { serveWorkers } from 'rdma-rpc/workers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { identityOf } from '../../runtime/control/tls/certificate.ts';
import { Authority, pems } from './certificates.ts';

const authority = new Authority();
const spiffe = 'spiffe://example.org/web';
const serverCert = authority.issue({ names: ['localhost'], addresses: ['127.0.0.1'], subject: 'server' });
const web = authority.issue({ uris: [spiffe] });

describe('options that cannot be used are refused at once', () => {
  test.each<[object, RegExp]>([
    [{ cert: serverCert.cert }, /a key without its cert|cert and a key/],
    [{ cert: serverCert.cert, key: web.key }, /key values mismatch|KEY_VALUES_MISMATCH/i],
    [{ ...pems(serverCert), requestCert: true }, /requestCert needs the ca/],
    [{ ...pems(serverCert), crl: authority.revoke() }, /crl needs the ca that signs/],
    [{ ...pems(serverCert), checkClientIdentity: () => undefined }, /checkClientIdentity needs the ca/],
    [{ ...pems(serverCert), certs: 1 }, /there is no option certs; did you mean cert/],
    [{ cert: 5, key: 5 }, /tls: cert: must be PEM/],
    [{ cert: 'x', key: 'y' }, /^createServer: tls: .*PEM/],
  ])('createServer: %#', (tls, reason) => {
    expect(() => createServer({ tls: tls as ServerTls })).toThrow(reason);
  });

  test('createChannel', () => {
    expect(() => createChannel('a:1', { tls: { ca: 'x', sni: 1 } as ChannelTls })).toThrow(/no option sni/);
    expect(() => createChannel('a:1', { tls: { ca: 'x', cert: 'x' } })).toThrow(
      'createChannel: tls: a cert without its key',
    );
    expect(() => createChannel('a:1', { tls: true as never })).toThrow(
      'createChannel: tls: must be an object with options, but is true',
    );
  });

  test.each<[string, () => unknown, RegExp]>([
    [
      'of servers on a channel',
      () => createChannel('a:1', { tls: { requestCert: true } as object }),
      /requestCert is an option of servers; there are cert, key/,
    ],
    [
      'of channels on a server',
      () => createServer({ tls: { ...pems(serverCert), identity: 'a' } as object }),
      /identity is an option of channels; there are cert, key/,
    ],
    [
      'like no other',
      () => createServer({ tls: { minVersion: 1 } as object }),
      /no option minVersion; there are cert, key/,
    ],
    [
      'in the wrong argument of tlsFiles',
      () => tlsFiles({ servername: 'a' } as object),
      /servername is no file; give it in the second argument, tlsFiles\(\{ … \}, \{ servername: … \}\)/,
    ],
    [
      'of tlsFiles, misspelt',
      () => createChannel('a:1', { tls: tlsFiles({ ca: '/ca' }, { serverName: 'a' }) }),
      /^createChannel: tls: there is no option serverName; did you mean servername\?/,
    ],
    [
      'of tlsFiles, of servers on a channel',
      () => createChannel('a:1', { tls: tlsFiles({ ca: '/ca' }, { requestCert: true }) }),
      /requestCert is an option of servers/,
    ],
    [
      'of tlsFiles, of no use beside a secret',
      () => createChannel('a:1', { tls: tlsFiles({ psk: '/psk' }, { servername: 'a' }) }),
      /^createChannel: tls: psk cannot be combined with servername/,
    ],
    [
      'of tlsFiles on a server',
      () => createServer({ tls: tlsFiles({ cert: '/c', key: '/k' }, { requestCerts: true }) }),
      /did you mean requestCert\?/,
    ],
  ])('an option %s', (_, make, reason) => {
    expect(make).toThrow(reason);
  });
});

test('files of an encrypted key are read with the passphrase beside them', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tls-files-'));
  try {
    const cert = join(folder, 'cert.pem');
    const key = join(folder, 'key.pem');
    writeFileSync(cert, serverCert.cert);
    const cipher = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'abc' } as const;
    writeFileSync(key, createPrivateKey(serverCert.key).export(cipher));
    expect(tlsFiles({ cert, key }, { passphrase: 'abc' })()).toMatchObject({
      passphrase: 'abc',
      cert: serverCert.cert,
    });
    expect(tlsFiles({ cert, key }, { passphrase: 'abd' })).toThrow(/decrypt/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

describe('listen() reads the files of tlsFiles, and names the wrong file', () => {
  let folder = '';
  const file = (name: string): string => join(folder, name);
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'tls-files-'));
    const texts = { cert: serverCert.cert, key: serverCert.key, ca: authority.ca, web: web.key, broken: 'x' };
    for (const [name, text] of Object.entries(texts)) writeFileSync(file(name), text);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test.each<[string, Record<string, string>, RegExp]>([
    [
      'a certificate that is not there',
      { cert: 'none' },
      /^createServer: tls: cert .+\/none: ENOENT: .+\/none'$/,
    ],
    ['a certificate that is none', { cert: 'broken' }, /^createServer: tls: cert .+\/broken: /],
    ['a key that is none', { key: 'broken' }, /^createServer: tls: key .+\/broken: /],
    ['the key of another', { key: 'web' }, /^createServer: tls: key .+\/web: .*mismatch/i],
    ['authorities that are none', { ca: 'broken' }, /^createServer: tls: ca .+\/broken: /],
    ['a list of revoked ones that is none', { crl: 'broken' }, /^createServer: tls: crl .+\/broken: /],
    [
      'authorities that have no end',
      { ca: '/dev/zero' },
      /^createServer: tls: ca \/dev\/zero: ENODEV: it is a device$/,
    ],
  ])('%s', async (_, wrong, reason) => {
    const names = { cert: 'cert', key: 'key', ca: 'ca', ...wrong };
    const paths = Object.fromEntries(
      Object.entries(names).map(([option, name]) => [option, resolve(folder, name)]),
    );
    const server = createServer({ tls: tlsFiles(paths) });
    await expect(server.listen('127.0.0.1:0')).rejects.toThrow(reason);
    await server.shutdown();
  });

  test('serveWorkers reads them, too, before it starts a thread', async () => {
    const tls = tlsFiles({ cert: file('none'), key: file('key') });
    await expect(
      serveWorkers(new URL('file:///nowhere.js'), { address: '127.0.0.1:0', tls }),
    ).rejects.toThrow(/^serveWorkers: tls: cert .+\/none: ENOENT: .+\/none'$/);
  });

  test('a function of the application is called for connections only', async () => {
    let asked = 0;
    const server = createServer({ tls: () => Promise.reject(new Error(`asked ${++asked}`)) });
    await server.listen('127.0.0.1:0');
    await server.shutdown();
    expect(asked).toBe(0);
  });
});

describe('the identity in a certificate', () => {
  const of = (wanted: Parameters<Authority['issue']>[0]): string | undefined =>
    identityOf(authority.issue(wanted).certificate);

  test('is its URI, else its first name, else its subject, else its first address', () => {
    expect(of({ uris: [spiffe], names: ['a.example'], subject: 'me' })).toBe(spiffe);
    expect(of({ names: ['a.example', 'b.example'], subject: 'me' })).toBe('dns:a.example');
    expect(of({ subject: 'me', addresses: ['10.0.0.1'] })).toBe('subject:CN=me');
    expect(of({ addresses: ['10.0.0.1', '10.0.0.2'] })).toBe('ip:10.0.0.1');
    expect(of({ addresses: ['2001:db8::1'] })).toBe('ip:2001:db8::1');
    expect(of({})).toBeUndefined();
  });

  test.each([
    [
      'a name that holds another',
      { names: ['a, URI:spiffe://example.org/admin'] },
      'dns:a, URI:spiffe://example.org/admin',
    ],
    ['a URI that holds a name', { uris: ['x://y, DNS:evil'] }, 'x://y, DNS:evil'],
    ['two URIs', { uris: [spiffe, 'spiffe://example.org/admin'] }, undefined],
    ['a URI like an address', { uris: ['ip:10.0.0.1'] }, undefined],
    ['a URI like a user', { uris: ['uid:0'] }, undefined],
    ['a URI like a subject', { uris: ['SUBJECT:CN=root'] }, undefined],
    ['a SPIFFE id of an authority', { uris: [spiffe], authority: true }, undefined],
    ['a SPIFFE id without a path', { uris: ['spiffe://example.org'] }, undefined],
    ['a SPIFFE id that ends with a slash', { uris: [`${spiffe}/`] }, undefined],
    ['a SPIFFE id that climbs', { uris: ['spiffe://example.org/web/../admin'] }, undefined],
    ['a SPIFFE id with a query', { uris: [`${spiffe}?x`] }, undefined],
    ['a SPIFFE id with an escape', { uris: [`${spiffe}%2fadmin`] }, undefined],
    ['a SPIFFE id in capitals', { uris: [spiffe.replace('spiffe', 'SPIFFE')] }, undefined],
    ['a SPIFFE id that is too long', { uris: [`spiffe://example.org/${'a'.repeat(2028)}`] }, undefined],
    ['dots that do not climb', { uris: ['spiffe://example.org/..a/...'] }, 'spiffe://example.org/..a/...'],
  ])('is not mistaken: %s', (_, wanted, identity) => {
    expect(of(wanted)).toBe(identity);
  });
});
