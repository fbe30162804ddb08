/**
 * Tests mistakes with the PEM texts and files of TLS. Such mistakes are found at once, and the errors name
 * the option as well as OpenSSL's code.
 */
import { execFileSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { createChannel, createServer, type ServerTls, type TlsFiles, tlsFiles } from 'rdma-rpc';
import { describe, expect, test } from 'vitest';
import { Authority, pems } from './certificates.ts';
import { ends } from './ends.ts';

const authority = new Authority();
const { ca } = authority;
const own = authority.issue({ addresses: ['127.0.0.1'] });
const other = authority.issue({ addresses: ['127.0.0.1'] });
const cipher = { format: 'pem', cipher: 'aes-256-cbc', passphrase: 'abc' } as const;
const encrypted = (type: 'pkcs8' | 'sec1'): string =>
  String(createPrivateKey(own.key).export({ ...cipher, type }));
const spoiled = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';

const thrownBy = (run: () => unknown): Error => {
  try {
    run();
  } catch (error) {
    return error as Error;
  }
  throw new Error('nothing was thrown');
};

const mistakes: [string, Partial<ServerTls>, RegExp][] = [
  ['a path of authorities', { ca: 'tls/ca.pem' }, /ca: no PEM text.*; it looks like a path.*tlsFiles\(\)/],
  ['such a path in a list', { ca: [ca, './ca.pem'] }, /ca: no PEM text.*tlsFiles\(\)/],
  ['a path in bytes', { ca: Buffer.from('/tls/ca.pem') }, /ca: no PEM text.*tlsFiles\(\)/],
  ['a path of a certificate', { cert: '/tls/server.pem' }, /cert: no PEM text.*tlsFiles\(\)/],
  ['a path of a key', { key: 'server.key' }, /key: no PEM text.*tlsFiles\(\)/],
  ['a path of revoked ones', { ca, crl: 'revoked.crl' }, /crl: no PEM text.*tlsFiles\(\)/],
  ['nothing', { ca: '' }, /ca: no PEM text: it has no line -----BEGIN …-----$/],
  ['a key as certificate', { cert: own.key }, /cert: there is no certificate in it, but a private key$/],
  ['a certificate as key', { key: own.cert }, /key: there is no private key in it, but a certificate$/],
  ['a key as authority', { ca: own.key }, /ca: there is no certificate in it, but a private key$/],
  ['a certificate as list', { ca, crl: ca }, /crl: there is no list of revoked .+ but a certificate$/],
  ['an authority that is broken', { ca: spoiled }, /ca: the certificate in it cannot be read \(.+\)$/],
  ['one behind others', { ca: ca + spoiled + ca }, /ca: certificate 2 in it cannot be read \(.+\)$/],
  ['a list that is broken', { ca, crl: spoiled.replaceAll('CERTIFICATE', 'X509 CRL') }, /crl: .*CRL/],
  ['a certificate that is broken', { cert: spoiled }, /cert: error:.+/],
  ['the key of another', { key: other.key }, /key: the key does not belong to the cert \(.+mismatch\)$/],
  ['an encrypted key', { key: encrypted('pkcs8') }, /key: the key is encrypted: give passphrase$/],
  ['one of the older kind', { key: encrypted('sec1') }, /key: the key is encrypted: give passphrase$/],
  [
    'another passphrase',
    { key: encrypted('pkcs8'), passphrase: 'abd' },
    // For one salt in 256, the padding is correct by chance, and OpenSSL finds no kind of key in the text.
    /key: the passphrase does not decrypt the key \(error:.+\)$/,
  ],
];

describe('createServer and createChannel refuse', () => {
  test.each(mistakes)('%s', (_, mistake, says) => {
    const tls = { ...pems(own), ...mistake };
    for (const [what, make] of [
      ['createServer', () => createServer({ tls })],
      ['createChannel', () => createChannel('a:1', { tls })],
    ] as const) {
      const error = thrownBy(make);
      expect(error).toBeInstanceOf(TypeError);
      expect(error.message).toMatch(new RegExp(`^${what}: tls: ${says.source}`));
    }
  });

  test("with OpenSSL's error as cause", () => {
    const { cause } = thrownBy(() => createServer({ tls: { cert: own.cert, key: other.key } }));
    expect(cause).toMatchObject({ code: 'ERR_OSSL_X509_KEY_VALUES_MISMATCH' });
    const tls = { cert: own.cert, key: encrypted('pkcs8') };
    const { cause: undecrypted } = thrownBy(() => createServer({ tls }));
    // With one salt in 256, the padding is correct by chance, and OpenSSL then fails after decryption.
    expect(undecrypted).toMatchObject({
      code: expect.stringMatching(/^ERR_OSSL_(BAD_DECRYPT|UNSUPPORTED)$/),
    });
  });

  test('a key that has lost its line breaks, without showing it', () => {
    const key = own.key.split('\n').slice(1, -2).join('');
    const error = thrownBy(() => createServer({ tls: { cert: own.cert, key } }));
    expect(error.message).toMatch(/key: no PEM text/);
    expect(error.message).not.toContain(key.slice(0, 16));
  });
});

describe('valid input is accepted', () => {
  const usual = '/etc/ssl/certs/ca-certificates.crt';
  test.each<[string, ServerTls]>([
    ['certificate and key in one file', { cert: own.key + own.cert, key: own.cert + own.key }],
    ['bytes', { cert: Buffer.from(own.cert), key: Buffer.from(own.key), ca: Buffer.from(ca) }],
    ['text around the blocks', { ...pems(own), ca: `# ours\r\n${ca.replaceAll('\n', '\r\n')}# end` }],
    ['several authorities in one text', { ...pems(own), ca: `${ca}\n${new Authority().ca}` }],
    ['an encrypted key', { cert: own.cert, key: encrypted('pkcs8'), passphrase: 'abc' }],
    ['an encrypted key of the older kind', { cert: own.cert, key: encrypted('sec1'), passphrase: 'abc' }],
    ['the authorities that Node trusts', { ...pems(own), ca: rootCertificates }],
    [
      'those of the system',
      { ...pems(own), ...(existsSync(usual) && { ca: readFileSync(usual, 'latin1') }) },
    ],
  ])('%s', async (_, tls) => {
    await createServer({ tls }).shutdown();
    await createChannel('a:1', { tls }).close();
  });
});

describe('tlsFiles', () => {
  const write = (text: string, name: string): string => {
    const path = join(ends.folder, name);
    writeFileSync(path, text);
    return path;
  };

  test.each<[string, string, RegExp]>([
    ['key', 'x', /^key .+\/key: no PEM text: it has no line -----BEGIN …-----$/],
    ['cert', own.key, /^cert .+\/cert: there is no certificate in it, but a private key$/],
    ['key', encrypted('pkcs8'), /^key .+\/key: the key is encrypted: give passphrase$/],
    ['key', other.key, /^key .+\/key: the key does not belong to the cert/],
    ['ca', ca + spoiled, /^ca .+\/ca: certificate 2 in it cannot be read/],
  ])('names the file: %s', (name, text, says) => {
    const texts = { ...pems(own), ca, [name]: text };
    const paths = Object.fromEntries(Object.entries(texts).map(([of, pem]) => [of, write(pem, of)]));
    expect(tlsFiles(paths)).toThrow(says);
  });

  test('refuses unknown names', () => {
    expect(() => tlsFiles({ certt: 'x' } as TlsFiles)).toThrow(
      'tlsFiles: there is no option certt; did you mean cert?',
    );
  });

  test('refuses a text instead of a path, without showing it', () => {
    const error = thrownBy(() => tlsFiles({ cert: '/x', key: own.key }));
    expect(error.message).toBe('tlsFiles: key: takes the path of a file');
    expect(() => tlsFiles({ cert: undefined } as never)).toThrow('tlsFiles: cert: takes the path of a file');
  });
});

test('with an unreadable `ca` Node trusts no authority, not even its default ones', () => {
  const script = `
    const { cert, key, ...more } = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
    const tls = require('node:tls');
    const server = tls.createServer({ cert, key, ...more, requestCert: true, rejectUnauthorized: false });
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      const socket = tls.connect({ host: '127.0.0.1', port, cert, key, rejectUnauthorized: false });
      server.on('secureConnection', ({ authorized }) => {
        console.log(authorized);
        socket.destroy();
        server.close();
      });
    });`;
  const extra = join(ends.folder, 'ca.pem');
  writeFileSync(extra, ca);
  const authorized = (more: object): string =>
    execFileSync(process.execPath, ['-e', script], {
      encoding: 'utf8',
      input: JSON.stringify({ ...pems(own), ...more }),
      env: { ...process.env, NODE_EXTRA_CA_CERTS: extra },
    }).trim();
  expect(authorized({})).toBe('true');
  expect(authorized({ ca: [extra] })).toBe('false');
  expect(authorized({ ca: [spoiled] })).toBe('false');
});
