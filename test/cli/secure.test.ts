/**
 * Tests the commands with a server with TLS, and with a server that requires client certificates. The tests
 * run the built command as a user would.
 */
import { createPrivateKey, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type Server, type ServerOptions } from 'rdma-rpc';
import { addHealth } from 'rdma-rpc/health';
import { addReflection } from 'rdma-rpc/reflection';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Authority } from '../security/certificates.ts';
import { type Outcome, run } from './command.ts';

const authority = new Authority();
const { ca } = authority;
const server = authority.issue({ names: ['greeter.example.org'], addresses: ['127.0.0.1'] });
const web = authority.issue({ uris: ['spiffe://example.org/web'] });
const psk = randomBytes(32).toString('hex');
const method = 'test.echo.Echo/Echo';

let folder: string;
const file = (name: string): string => join(folder, name);
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-secure-'));
  const cipher = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'abc' } as const;
  const texts = {
    ca,
    cert: web.cert,
    key: web.key,
    encrypted: String(createPrivateKey(web.key).export(cipher)),
    passphrase: 'abc\n',
    psk: `fleet:${psk}\n`,
    other: `fleet:${psk.slice(2)}00\n`,
    broken: 'x',
  };
  for (const [name, text] of Object.entries(texts)) writeFileSync(file(name), text);
});
afterAll(() => rmSync(folder, { recursive: true }));

const servers: Server[] = [];
afterEach(async () => {
  for (const each of servers.splice(0)) await each.shutdown({ graceMs: 0 });
});

async function serve(options: ServerOptions, address = '127.0.0.1:0'): Promise<string> {
  const made = createServer(options).add(EchoDefinition, {
    echo: (_, { peer }) => ({ text: peer.identity ?? 'nobody' }),
  });
  addHealth(made);
  addReflection(made);
  servers.push(made);
  return made.listen(address);
}
const own = { cert: server.cert, key: server.key };
const withCa = () => ['--ca', file('ca')];
const asWeb = () => [...withCa(), '--cert', file('cert'), '--key', file('key')];

test.each<[string, string[], RegExp]>([
  ['health', [], /^SERVING\n$/],
  ['list', [], /test\.echo\.Echo\n/],
  ['describe', [method], /rpc Echo/],
  ['call', [method], /spiffe:\/\/example\.org\/web/],
  ['bench', [method, '-n', '3'], /OK/],
  ['explain', [method, '--size', '10'], /inline/],
  ['ping', ['-c', '1'], /security bound, .*verified as dns:greeter\.example\.org/],
])('%s over mutual TLS', async (command, args, expected) => {
  const address = await serve({ tls: { ...own, ca }, allow: { identity: 'spiffe://example.org/web' } });
  const { code, out, errors } = await run(command, address, ...args, ...asWeb());
  expect([code, errors]).toEqual([0, '']);
  expect(out).toMatch(expected);
});

test('the key may be encrypted, with its passphrase in a file', async () => {
  const address = await serve({ tls: { ...own, ca } });
  const args = [...withCa(), '--cert', file('cert'), '--key', file('encrypted')];
  const call = (...more: string[]) => run('call', address, method, ...args, ...more);
  expect((await call('--passphrase-file', file('passphrase'))).out).toMatch(/spiffe:/);
  expect(await call('--passphrase-file', file('broken'))).toMatchObject({
    code: 2,
    errors: expect.stringMatching(/^error: --key .+encrypted: the passphrase does not decrypt the key \(/),
  });
});

test('a shared secret is read from a file', async () => {
  const address = await serve({ tls: { psk: { fleet: psk } } });
  const call = (name: string) => run('call', address, method, '--psk-file', file(name));
  expect((await call('psk')).out).toMatch(/psk:fleet/);
  expect(await call('other')).toMatchObject({
    code: 1,
    errors: expect.stringMatching(/the server has no such key under this name \(--psk-file\)\n$/),
  });
  expect((await run('health', address, ...withCa())).errors).toMatch(
    /it may have a pre-shared key while a certificate is expected: give the file of the same key \(--psk-file\), or /,
  );
});

test.each<[string, () => string[], Partial<Outcome>]>([
  ['another of its names', () => [...withCa(), '--servername', 'greeter.example.org'], { code: 0 }],
  ['its identity', () => [...withCa(), '--identity', 'dns:greeter.example.org'], { code: 0 }],
  [
    'its identity without the prefix',
    () => [...withCa(), '--identity', 'greeter.example.org'],
    { code: 1, errors: expect.stringMatching(/with the prefix dns: \(--identity\)\n$/) },
  ],
  [
    'without any flag',
    () => [],
    {
      code: 1,
      errors: expect.stringMatching(/requires TLS on host:port addresses: give --ca, --psk-file or --tls\n$/),
    },
  ],
  [
    'authorities that have not signed it',
    () => ['--tls'],
    {
      code: 1,
      errors: expect.stringMatching(
        /certificate is not accepted: .+\([A-Z_]+; --ca must contain the .+\)\n$/,
      ),
    },
  ],
  [
    'a name that the certificate does not have',
    () => [...withCa(), '--servername', 'a.example.org'],
    {
      code: 1,
      errors: expect.stringMatching(
        /ALTNAME_INVALID; --servername or --identity must be a name in the certificate, such as identity: '[^']+'\)\n$/,
      ),
    },
  ],
])('a server with a certificate is reached or refused with %s', async (_, args, outcome) => {
  const address = await serve({ tls: own });
  expect(await run('health', address, ...args())).toMatchObject(outcome);
});

test('the error names the flags when a server requires a certificate or has no TLS', async () => {
  const mutual = await serve({ tls: { ...own, ca } });
  expect((await run('health', mutual, ...withCa())).errors).toMatch(
    /that it trusts: --cert and --key, signed by an authority that it has \(its ca\)\n$/,
  );
  const plain = await serve({});
  expect((await run('health', plain, ...withCa())).errors).toMatch(/at this address: leave out --tls, --ca,/);
});

test.each<[string, () => string[], RegExp]>([
  ['a certificate without a key', () => ['--cert', file('cert')], /^error: --cert needs --key\n$/],
  ['a key without a certificate', () => ['--key', file('key')], /^error: --key needs --cert\n$/],
  ['a missing file', () => ['--ca', file('none')], /^error: --ca .+none: ENOENT/],
  [
    'a file that is not a key',
    () => ['--cert', file('cert'), '--key', file('broken')],
    /^error: --key .+broken: no PEM text/,
  ],
  [
    'an encrypted key without its passphrase',
    () => ['--cert', file('cert'), '--key', file('encrypted')],
    /^error: --key .+encrypted: the key is encrypted: give --passphrase-file\n$/,
  ],
  [
    'a key as certificate',
    () => ['--cert', file('key'), '--key', file('key')],
    /^error: --cert .+key: there is no certificate in it, but a private key\n$/,
  ],
  [
    'a file without certificates of authorities',
    () => ['--ca', file('broken')],
    /^error: --ca .+broken: no PEM text/,
  ],
  [
    'a passphrase without a key',
    () => ['--passphrase-file', file('passphrase')],
    /--passphrase-file needs --key/,
  ],
  [
    'a missing passphrase file',
    () => ['--cert', file('cert'), '--key', file('key'), '--passphrase-file', file('none')],
    /^error: --passphrase-file: .*none/,
  ],
  [
    'an invalid file of secrets',
    () => ['--psk-file', file('broken')],
    /^error: --psk-file: .+line 1 is not NAME:HEX\n$/,
  ],
  ['an invalid credential', () => ['--credential', 'abc'], /Give key=value/],
])('health and bench end with exit code 2 for %s', async (_, args, errors) => {
  for (const command of [
    ['health', '127.0.0.1:1'],
    ['bench', '127.0.0.1:1', method],
  ] as const)
    expect(await run(...command, ...args())).toMatchObject({
      code: 2,
      errors: expect.stringMatching(errors),
    });
});

test('credentials are passed to `authenticate`, over TLS and unix sockets only', async () => {
  const authenticate: ServerOptions['authenticate'] = (_, metadata) => {
    if (metadata.get('token') !== 'abc') throw new Error('who?');
    return 'user:eve';
  };
  const secure = await serve({ tls: own, authenticate });
  const call = ['call', secure, method, ...withCa()] as const;
  expect((await run(...call, '--credential', 'token=abc')).out).toMatch(/user:eve/);
  expect(await run(...call)).toMatchObject({
    code: 1,
    errors: expect.stringMatching(/: give --credential\n$/),
  });
  const local = await serve({ authenticate }, `unix:${file('socket')}`);
  expect((await run('call', local, method, '--credential', 'token=abc')).out).toMatch(/user:eve/);
  const plain = await serve({ authenticate });
  expect((await run('health', plain, '--credential', 'token=abc')).errors).toMatch(
    /others may read: use TLS \(--ca, or --tls\) or a unix socket\n$/,
  );
  const grpc = await run('bench', plain, method, '--grpc', '--credential', 'token=abc');
  expect(grpc).toMatchObject({
    code: 2,
    errors: expect.stringMatching(/--credential has no meaning with --grpc/),
  });
});

test('with --require sessions are sealed, or refused with an error that names the flag', async () => {
  const sealed = ['--require', 'sealed'];
  const levels: string[] = [];
  const onSession: ServerOptions['onSession'] = (session) =>
    void levels.push(session.accepted ? session.security : 'refused');
  const secure = await serve({ tls: own, onSession });
  for (const args of [
    ['health', secure],
    ['bench', secure, method, '-n', '3'],
    ['explain', secure, method, '--size', '10'],
  ])
    expect(await run(...(args as [string]), ...withCa(), ...sealed)).toMatchObject({ code: 0, errors: '' });
  expect(new Set(levels)).toEqual(new Set(['sealed']));
  const verbose = await run('call', secure, method, '-v', ...withCa(), ...sealed);
  expect(verbose.errors).toMatch(
    /^the session is 'sealed': calls are encrypted; the server is dns:greeter\.example\.org$/m,
  );
  const plain = await serve({});
  expect(await run('call', plain, method, ...sealed)).toMatchObject({
    code: 1,
    errors: expect.stringMatching(
      /is 'none', and the client requires 'sealed' \(--require\): the handshake has to be/,
    ),
  });
  const none = await run('health', plain, '--require', 'secret');
  expect(none).toMatchObject({ code: 2, errors: expect.stringMatching(/peer, bound, sealed/) });
  const grpc = await run('bench', plain, method, '--grpc', ...sealed);
  expect(grpc).toMatchObject({
    code: 2,
    errors: expect.stringMatching(/--require have no meaning with --grpc/),
  });
});
