/**
 * Both sides share a secret in place of certificates. The tests check which clients get a session with it,
 * and how guesses fail.
 */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect as secureConnect } from 'node:tls';
import {
  type ChannelTls,
  createChannel,
  createServer,
  type ServerTls,
  Status,
  type StatusCode,
  stats,
  tlsFiles,
} from 'rdma-rpc';
import { describe, expect, test } from 'vitest';
import { readPsk } from '../../runtime/control/tls/psk.ts';
import { caught, until } from '../outcomes.ts';
import { Authority } from './certificates.ts';
import { ends, reach, serve as served } from './ends.ts';

const key = randomBytes(32).toString('hex');
const old = randomBytes(32);
const psk = { fleet: key, 'fleet of 2025': old };
const authority = new Authority();
const { cert, key: certKey } = authority.issue({ addresses: ['127.0.0.1'] });

async function serve(options: Parameters<typeof served>[0] = {}) {
  const told: unknown[] = [];
  const onSession = (session: unknown) => told.push(session);
  return { ...(await served({ tls: { psk }, onSession, ...options }, '127.0.0.1:0')), told };
}

describe('with the secret', () => {
  test.each(['shm', 'tcp'] as const)(
    'both sides identify each other by its name, over %s',
    async (fabric) => {
      const { server, seen, address } = await serve({ fabric });
      const { channel, client } = reach(address, { tls: { psk: { fleet: key } }, fabric, identity: 'liar' });
      expect(await client.echo({ number: 7 })).toMatchObject({ number: 7 });
      expect(seen[0]).toMatchObject({ identity: 'psk:fleet', claims: 'liar', certificate: undefined });
      expect(channel.session).toMatchObject({ security: 'bound', identity: 'psk:fleet' });
      await until(() => server.sessions.length > 0);
      expect(server.sessions[0]).toMatchObject({ security: 'bound', identity: 'psk:fleet' });
    },
  );

  test('`allow` uses the name of the secret, and refuses another name', async () => {
    const { address } = await serve({ allow: { identity: 'psk:fleet' } });
    await reach(address, { tls: { psk: { fleet: key } } }).client.echo({});
    const error = await caught(reach(address, { tls: { psk: { 'fleet of 2025': old } } }).client.echo({}));
    expect(error.code).toBe(Status.PERMISSION_DENIED);
  });

  test('credentials are sent over it', async () => {
    const { address } = await serve({ authenticate: (_, metadata) => String(metadata.get('token')) });
    const { client } = reach(address, {
      tls: { psk: { fleet: key } },
      credentials: { session: () => ({ metadata: { token: 'abc' } }) },
    });
    await client.echo({});
    // A session counts once it is ready, and the answer may come first.
    await until(() => ends.servers[0]!.sessions.length > 0);
    expect(ends.servers[0]!.sessions[0]!.identity).toBe('abc');
  });

  test('a file is read again when it has changed, so the next key is used without a lost call', async () => {
    const path = join(ends.folder, 'psk');
    const next = randomBytes(32).toString('hex');
    writeFileSync(path, `# made by openssl rand -hex 32\nfleet:${key}\n`);
    const { address } = await serve({ tls: tlsFiles({ psk: path }) });
    const before = reach(address, { tls: tlsFiles({ psk: path }) });
    await before.client.echo({});
    writeFileSync(path, `fleet 2:${next}\n`);
    const after = reach(address, { tls: { psk: { 'fleet 2': next } } });
    await after.client.echo({});
    await before.client.echo({});
    expect(after.channel.session?.identity).toBe('psk:fleet 2');
    expect((await caught(reach(address, { tls: { psk: { fleet: key } } }).client.echo({}))).code).toBe(
      Status.UNAUTHENTICATED,
    );
  });
});

describe('a client is refused, before a queue pair is created, that', () => {
  const guess = randomBytes(32);
  const noKey = /the server has no such key under this name/;
  const { UNAUTHENTICATED, UNAVAILABLE } = Status;
  test.each<[string, ChannelTls | undefined, RegExp, StatusCode]>([
    ['guesses the key', { psk: { fleet: guess } }, noKey, UNAUTHENTICATED],
    ['guesses the name, too', { psk: { boss: guess } }, noKey, UNAUTHENTICATED],
    ['has the key of another name', { psk: { fleet: old } }, noKey, UNAUTHENTICATED],
    [
      'has a certificate instead',
      { ca: authority.ca, cert, key: certKey },
      /refused the TLS handshake/,
      UNAVAILABLE,
    ],
    ['speaks no TLS', undefined, /requires TLS on host:port addresses/, UNAUTHENTICATED],
  ])('%s', async (_, tls, says, code) => {
    const { server, lines, told, address } = await serve();
    const { queuePairs } = stats();
    const { channel, client } = reach(address, {
      ...(tls === undefined ? {} : { tls }),
      backoffMs: 600_000,
      backoffMaxMs: 600_000,
    });
    const error = await caught(client.echo({}));
    expect([error.code, error.processed]).toEqual([Status.UNAUTHENTICATED, 'no']);
    expect(error.message).toMatch(says);
    await channel.close();
    await until(() => told.length > 0);
    expect(told).toMatchObject([{ accepted: false, code, peer: { identity: undefined } }]);
    expect([server.sessionCount, stats().queuePairs]).toEqual([0, queuePairs]);
    for (const text of [error.message, String(error.stack), ...lines, JSON.stringify(told)]) {
      expect(text).not.toContain(key);
      expect(text).not.toContain(guess.toString('hex'));
    }
  });

  test('does not learn from the failure which names exist', async () => {
    const { address } = await serve();
    const port = Number(address.split(':')[1]);
    const failure = (name: string): Promise<unknown> =>
      new Promise((resolve) => {
        const socket = secureConnect({
          host: '127.0.0.1',
          port,
          ciphers: 'TLS_AES_128_GCM_SHA256',
          pskCallback: () => ({ psk: guess, identity: name }),
        });
        socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
      });
    expect(await failure('boss')).toBe(await failure('fleet'));
  });

  test('names a key that it does not have, with a cipher that does not check it', async () => {
    const { server, lines, address } = await serve();
    const port = Number(address.split(':')[1]);
    const socket = secureConnect({
      host: '127.0.0.1',
      port,
      ciphers: 'TLS_AES_256_GCM_SHA384',
      pskCallback: () => ({ psk: guess, identity: 'fleet' }),
    });
    await new Promise((resolve) => socket.once('error', resolve));
    await until(() => lines.length > 0);
    expect([server.sessionCount, lines[0]]).toEqual([0, expect.stringMatching(/no shared cipher/i)]);
  });
});

describe('a client with the secret refuses a server, before it sends anything, that', () => {
  test.each<[string, ServerTls | undefined, RegExp]>([
    ['has another key', { psk: { fleet: randomBytes(32) } }, /the server has no such key/],
    [
      'has a certificate instead',
      { cert, key: certKey },
      /the server has a certificate, but this channel has/,
    ],
    ['speaks no TLS', undefined, /does not speak TLS at this address/],
  ])('%s', async (_, tls, says) => {
    const { server, address } = await served(tls === undefined ? {} : { tls }, '127.0.0.1:0');
    const error = await caught(reach(address, { tls: { psk: { fleet: key } } }).client.echo({}));
    expect([error.code, error.processed]).toEqual([Status.UNAUTHENTICATED, 'no']);
    expect(error.message).toMatch(says);
    expect(server.sessionCount).toBe(0);
  });
});

describe('unusable input is refused at once, and the error contains no key', () => {
  const short = 'c0ffee00c0ffee';
  test.each<[object, RegExp]>([
    [{ psk: {} }, /psk: there is no key in it/],
    [{ psk: { a: short } }, /the key of "a" must be 16 to 256 random bytes, or a string with them in hex/],
    [{ psk: { a: 'a password that people know' } }, /the key of "a" must be 16/],
    [{ psk: { a: 1234567 } }, /the key of "a" must be 16/],
    [{ psk: { a: randomBytes(15) } }, /the key of "a" must be 16 to 256/],
    [{ psk: { a: randomBytes(257) } }, /the key of "a" must be 16 to 256/],
    [{ psk: { a: randomBytes(257).toString('hex') } }, /the key of "a" must be 16 to 256/],
    [
      { psk: [key] },
      /psk: must be an object with names, such as { name: … }, or a function, but is of type Array/,
    ],
    [{ psk: Buffer.from(key, 'hex') }, /psk: must be an object with names, .* but is of type Uint8Array/],
    [{ psk: { '': key } }, /a name has 1 to 128 bytes/],
    [{ psk: { ['é'.repeat(65)]: key } }, /a name has 1 to 128 bytes/],
    [{ psk: { 'a\nb': key } }, /no control characters/],
    [{ psk: { a: key }, ca: authority.ca }, /psk cannot be combined with ca/],
    [{ psk: { a: key }, cert, key: certKey }, /psk cannot be combined with cert/],
    [{ psk: { a: key }, rejectUnauthorized: false }, /psk cannot be combined with rejectUnauthorized/],
  ])('%#', (tls, reason) => {
    const given = (tls as { psk: object }).psk;
    // A key that is given without a list is one secret. If the key were read as a list, its bytes would be
    // numbers, such as the 8 of "Uint8Array".
    const secrets = (Buffer.isBuffer(given) ? [given] : Object.values(given)).map((secret) =>
      Buffer.isBuffer(secret) ? secret.toString('hex') : String(secret),
    );
    for (const make of [() => createServer({ tls }), () => createChannel('a:1', { tls })]) {
      expect(make).toThrow(reason);
      for (const secret of secrets) expect(make).not.toThrow(secret);
    }
  });

  test('the longest and the shortest key are accepted', async () => {
    for (const [name, bytes] of [
      ['a', 16],
      ['é'.repeat(64), 256],
    ] as const) {
      const keys = { [name]: randomBytes(bytes) };
      const { seen, address } = await served({ tls: { psk: keys } }, '127.0.0.1:0');
      await reach(address, { tls: { psk: keys } }).client.echo({});
      expect(seen[0]?.identity).toBe(`psk:${name}`);
    }
  });

  test('several keys of a channel', () => {
    expect(() => createChannel('a:1', { tls: { psk } })).toThrow(/a channel has one key/);
  });

  test.each([
    ['', /there is no key in it/],
    ['fleet', /line 1 is not NAME:HEX/],
    [`# ours\n\nfleet:${key}\nother ${key}`, /line 4 is not NAME:HEX/],
    ['fleet:c0ffee', /the key of "fleet" must be 16/],
    [`fleet:${key}\nfleet:${key}`, /line 2 has a second key of "fleet"/],
  ])('a file %j', (text, reason) => {
    expect(() => readPsk(text)).toThrow(reason);
    for (const secret of [key, 'c0ffee']) expect(() => readPsk(text)).not.toThrow(secret);
  });
});
