/**
 * Tests tokens of service accounts. The tokens are signed here as a cluster signs them, with keys from an
 * https server that acts as the API server.
 */
import { writeFileSync } from 'node:fs';
import { createServer as createHttps, type Server as Https } from 'node:https';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { Metadata, type PeerInfo, Status } from 'rdma-rpc';
import { serviceAccounts, serviceAccountToken } from 'rdma-rpc/kubernetes';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { claimsOf, issuerOf } from '../../runtime/identity/kubernetes/token.ts';
import { caught } from '../outcomes.ts';
import { Authority } from './certificates.ts';
import { ends, reach, serve, unixAddress } from './ends.ts';

const issuer = 'https://kubernetes.default.svc.cluster.local';
const audience = 'greeter.example.org';
const sub = 'system:serviceaccount:shop:web';
const soon = (): number => Math.floor(Date.now() / 1000) + 3600;

const keys = await generateKeyPair('RS256', { extractable: true });
const other = await generateKeyPair('RS256', { extractable: true });
const jwk = { ...(await exportJWK(keys.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' };
const jwks = { keys: [jwk] };

const token = (
  claims: JWTPayload = {},
  header: object = {},
  key: Parameters<SignJWT['sign']>[0] = keys.privateKey,
): Promise<string> =>
  new SignJWT({ iss: issuer, aud: [audience], sub, exp: soon(), ...claims })
    .setProtectedHeader({ alg: 'RS256', kid: 'one', ...header })
    .sign(key);

const ask = async (authenticate: ReturnType<typeof serviceAccounts>, authorization?: string) =>
  authenticate({} as PeerInfo, new Metadata(authorization === undefined ? undefined : { authorization }));

describe('a token', () => {
  const authenticate = serviceAccounts({ audience, issuer, jwks });

  test('of this cluster and for this audience identifies the client', async () => {
    expect(await ask(authenticate, `Bearer ${await token()}`)).toBe(sub);
  });

  test.each<[string, () => string | Promise<string> | undefined, RegExp]>([
    ['that is missing', () => undefined, /no token: the metadata needs/],
    ['that is none', () => 'abc', /Invalid Compact JWS/],
    ['for another audience', () => token({ aud: ['https://kubernetes.default.svc'] }), /"aud"/],
    ['without an audience', () => token({ aud: undefined as never }), /"aud"/],
    ['without an issuer', () => token({ iss: undefined as never }), /"iss"/],
    ['of another issuer', () => token({ iss: 'https://evil.example.org' }), /"iss"/],
    ['that has expired', () => token({ exp: soon() - 7200 }), /"exp"/],
    ['that never expires', () => token({ exp: undefined as never }), /"exp"/],
    ['that is not valid yet', () => token({ nbf: soon() }), /"nbf"/],
    ['signed with another key', () => token({}, {}, other.privateKey), /signature verification failed/],
    [
      'with a key that is none of theirs',
      () => token({}, { kid: 'two' }, other.privateKey),
      /no applicable key/,
    ],
    ['of a user', () => token({ sub: 'system:admin' }), /which is no service account/],
    [
      'of an account with a colon too many',
      () => token({ sub: `${sub}:admin` }),
      /which is no service account/,
    ],
    [
      'that the public key has "signed", as a secret',
      () => token({}, { alg: 'HS256' }, Buffer.from(String(jwk.n), 'base64url')),
      /"alg"/,
    ],
    [
      'that nobody has signed',
      () => {
        const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
        return `${part({ alg: 'none' })}.${part({ iss: issuer, aud: audience, sub, exp: soon() })}.`;
      },
      /"alg"|Invalid/,
    ],
  ])('%s is refused, and not shown', async (_, make, reason) => {
    const bad = await make();
    const error = await caught(ask(authenticate, bad === undefined ? bad : `Bearer ${bad}`));
    expect(error.message).toMatch(reason);
    if (bad !== undefined && bad.length > 10) expect(error.message).not.toContain(bad.slice(-20));
  });
});

test('is sent from the file of a pod to the server, and names its client', async () => {
  const file = join(ends.folder, 'token');
  writeFileSync(file, `${await token()}\n`);
  const { seen, address } = await serve(
    { authenticate: serviceAccounts({ audience, issuer, jwks }) },
    unixAddress(),
  );
  await reach(address, { credentials: { session: serviceAccountToken(file) } }).client.echo({});
  expect(seen[0]?.identity).toBe(sub);
  writeFileSync(file, await token({ aud: 'others' }));
  const error = await caught(
    reach(address, { credentials: { session: serviceAccountToken(file) } }).client.echo({}),
  );
  expect(error.code).toBe(Status.UNAUTHENTICATED);
  expect(error.message).not.toMatch(/aud/);
});

test('is kept until it expires', async () => {
  const file = join(ends.folder, 'token');
  const exp = soon();
  writeFileSync(file, await token({ exp }));
  expect(await serviceAccountToken(file)()).toMatchObject({ expiresAtMs: exp * 1000 });
});

describe('a file without a token is an error that does not contain its text', () => {
  const part = (text: string): string => Buffer.from(text).toString('base64url');
  test.each<[string, string]>([
    ['a secret', 'secret'],
    ['no JSON', 'a.secret.c'],
    ['no signature', part('{"secret":1}')],
    ...['null', '5', '"secret"', '["secret"]'].map(
      (claims) => [claims, `a.${part(claims)}.c`] as [string, string],
    ),
  ])('%s', async (_, text) => {
    const file = join(ends.folder, 'token');
    writeFileSync(file, text);
    const error = await caught(Promise.resolve(serviceAccountToken(file)()));
    expect(error.message).toBe('the file does not contain a token');
    expect(() => claimsOf(text)).toThrow(error.message);
  });

  test('and so is the token of a pod without an issuer', () => {
    expect(issuerOf(`a.${part(`{"iss":"${issuer}"}`)}.c`)).toBe(issuer);
    for (const iss of ['', 5, null])
      expect(() => issuerOf(`a.${part(JSON.stringify({ iss }))}.c`)).toThrow(
        /give serviceAccounts the option issuer/,
      );
  });
});

describe('keys from an address', () => {
  const authority = new Authority('cluster');
  let https: Https;
  let url: URL;
  let answer: { status: number; body: string; ends?: (socket: TLSSocket) => void };
  let asked = 0;
  beforeAll(async () => {
    const { cert, key } = authority.issue({ addresses: ['127.0.0.1'] });
    https = createHttps({ cert, key }, (_, response) => {
      ++asked;
      answer.ends?.(response.socket as TLSSocket);
      response.writeHead(answer.status).end(answer.body);
    });
    await new Promise<void>((resolve) => https.listen(0, '127.0.0.1', resolve));
    url = new URL(`https://127.0.0.1:${(https.address() as { port: number }).port}/openid/v1/jwks`);
  });
  afterAll(() => void https.close());

  test('are requested once, and only from servers whose certificates the given authorities have signed', async () => {
    answer = { status: 200, body: JSON.stringify(jwks) };
    const authenticate = serviceAccounts({ audience, issuer, jwks: url, ca: authority.ca });
    for (let i = 0; i < 3; ++i) expect(await ask(authenticate, `Bearer ${await token()}`)).toBe(sub);
    expect(asked).toBe(1);
    const fooled = serviceAccounts({ audience, issuer, jwks: url, ca: new Authority('evil').ca });
    await expect(ask(fooled, `Bearer ${await token()}`)).rejects.toThrow(/signature|certificate/i);
    expect(asked).toBe(1);
  });

  test.each<[string, typeof answer, RegExp]>([
    ['an error', { status: 500, body: JSON.stringify(jwks) }, /jwks: status 500 instead of keys/],
    ['nothing', { status: 204, body: '' }, /jwks: status 204 instead of keys/],
    ['nothing new', { status: 304, body: '' }, /jwks: status 304 instead of keys/],
    ['a status that is none', { status: 999, body: '{}' }, /jwks: status 999 instead of keys/],
    ['no JSON', { status: 200, body: '<html>' }, /JSON/],
    ['no keys', { status: 200, body: '{}' }, /JSON Web Key Set malformed/],
    ['too much', { status: 200, body: ' '.repeat(2 << 20) }, /jwks: more than 1048576 bytes/],
    ['an end', { status: 200, body: '{}', ends: (socket) => void socket.destroy() }, /hang up|ECONNRESET/],
    [
      'half of it',
      {
        status: 200,
        body: '',
        ends: (socket) => void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{'),
      },
      /aborted/,
    ],
    [
      'another protocol',
      {
        status: 200,
        body: '',
        ends: (socket) =>
          void socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'),
      },
      /jwks: the server switched to another protocol/,
    ],
  ])('that answers with %s admits no client', async (_, bad, reason) => {
    answer = bad;
    const authenticate = serviceAccounts({ audience, issuer, jwks: url, ca: authority.ca });
    await expect(ask(authenticate, `Bearer ${await token()}`)).rejects.toThrow(reason);
  });
});

test.each<[object, RegExp]>([
  [{}, /serviceAccounts: audience is missing: give the audience of the tokens/],
  [{ audience: [] }, /audience is missing: give the audience/],
  [{ audience: '' }, /audience is missing: give the audience/],
  [{ audience, jwks: new URL('http://a/b') }, /jwks: http:\/\/a\/b is not https/],
  [{ audience, keys: 1 }, /there is no option keys/],
])('options that cannot be used: %j', (options, reason) => {
  expect(() => serviceAccounts(options as never)).toThrow(reason);
});
