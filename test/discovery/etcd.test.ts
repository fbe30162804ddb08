/** Tests registration and the resolver with a real etcd: its leases, watches, TLS, users and restarts. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Status } from 'rdma-rpc';
import { etcd, type Registration, type RegistrationOptions, register } from 'rdma-rpc/etcd';
import { addHealth } from 'rdma-rpc/health';
import { beforeEach, describe, expect, test } from 'vitest';
import { needs } from '../needs.ts';
import { caught, until } from '../outcomes.ts';
import { Authority } from '../security/certificates.ts';
import { ends } from '../security/ends.ts';
import { afterwards, channelTo, known, serve, sorted } from './bed.ts';
import { EtcdServer } from './etcd-server.ts';

needs('etcd');

const service = 'shop/greeter';
const b64 = (text: string): string => Buffer.from(text).toString('base64');

/** Makes a request through etcd's JSON gateway, which has etcd's whole API. */
async function gateway(path: string, body: object): Promise<Record<string, unknown>> {
  const answer = await fetch(`${server.url}/v3/${path}`, { method: 'POST', body: JSON.stringify(body) });
  return (await answer.json()) as Record<string, unknown>;
}
const put = (key: string, value: string, lease?: unknown) =>
  gateway('kv/put', { key: b64(key), value: b64(value), lease });
async function stored(key: string): Promise<string | undefined> {
  const { kvs } = (await gateway('kv/range', { key: b64(key) })) as { kvs?: { value: string }[] };
  return kvs && Buffer.from(kvs[0]!.value, 'base64').toString();
}
async function leaseOf(key: string): Promise<unknown> {
  const { kvs } = (await gateway('kv/range', { key: b64(key) })) as { kvs?: { lease: string }[] };
  return kvs?.[0]?.lease;
}

let server: EtcdServer;
async function begin(...started: Parameters<typeof EtcdServer.start>): Promise<void> {
  server = await EtcdServer.start(...started);
  afterwards(() => server.remove());
}

async function registered(
  options: Partial<RegistrationOptions> = {},
): Promise<Registration & Awaited<ReturnType<typeof serve>>> {
  const running = await serve();
  const { address } = running;
  const endpoints = server.url;
  const registration = register(running.server, { endpoints, service, address, ttlMs: 2000, ...options });
  await registration.ready();
  return Object.assign(registration, running);
}
const resolver = (options: object = {}) => etcd({ endpoints: server.url, service, ...options });

describe('with an etcd', () => {
  beforeEach(() => begin());

  test('servers that register are found, and leave the list when they shut down', async () => {
    const a = await registered();
    const { channel, call } = channelTo(resolver());
    expect(await call()).toBe(a.address);
    const b = await registered();
    await until(() => known(channel) === sorted(a.address, b.address));
    await until(() => channel.addresses.every(({ state }) => state === 'ready'));
    let failed = 0;
    let stopped = false;
    const load = (async () => {
      while (!stopped) await call().catch(() => ++failed);
    })();
    await a.server.shutdown();
    expect(a.registered).toBe(false);
    await until(() => known(channel) === b.address);
    stopped = true;
    await load;
    expect(failed).toBe(0);
    expect(await stored(`${service}/${a.address}`)).toBeUndefined();
  });

  test('the key is removed before clients learn of the shutdown', async () => {
    const a = await registered();
    const { call } = channelTo(resolver());
    await call();
    const seen: (string | undefined)[] = [];
    const key = `${service}/${a.address}`;
    // The server awaits this listener, as it awaits the registration's own listener, so it still serves.
    a.server.onShutdown(async () => {
      await until(() => !a.registered);
      seen.push(await stored(key));
      seen.push(await call());
    });
    await a.server.shutdown();
    expect(seen).toEqual([undefined, a.address]);
  });

  test('keys and values are those of the Go package naming/endpoints', async () => {
    const plain = await registered();
    expect(await stored(`${service}/${plain.address}`)).toBe(
      JSON.stringify({ Op: 0, Addr: plain.address, Metadata: null }),
    );
    const more = await registered({ weight: 3, zone: 'a', attributes: { rack: '7' } });
    expect(JSON.parse((await stored(`${service}/${more.address}`)) ?? '')).toEqual({
      Op: 0,
      Addr: more.address,
      Metadata: { weight: 3, zone: 'a', rack: '7' },
    });
    const found = await resolver().resolve(AbortSignal.timeout(5000));
    expect(found).toContainEqual({ address: more.address, weight: 3, zone: 'a', attributes: { rack: '7' } });
  });

  test('doors of a server are metadata, and clients connect to them', async () => {
    const door = `unix:${join(ends.folder, 'door.sock')}`;
    const a = await serve();
    await a.server.listen(door);
    const doors = ['unix:/nowhere/door.sock', door];
    const endpoints = server.url;
    const registration = register(a.server, { endpoints, service, address: a.address, ttlMs: 2000, doors });
    await registration.ready();
    expect(JSON.parse((await stored(`${service}/${a.address}`)) ?? '')).toMatchObject({
      Metadata: { doors },
    });
    const { channel, call } = channelTo(resolver());
    expect(await call()).toBe(a.address);
    expect(channel.addresses).toMatchObject([{ address: a.address, doors, door, state: 'ready' }]);
    await put(`${service}/bad`, '{"Addr":"10.0.0.1:1","Metadata":{"doors":["nonsense"]}}');
    await put(`${service}/text`, '{"Addr":"10.0.0.2:1","Metadata":{"doors":"no list"}}');
    await until(() => known(channel) === sorted(a.address, '10.0.0.2:1'));
  });

  test('values of other programs are used as far as possible', async () => {
    const lines: string[] = [];
    await put(`${service}/1`, '{"Op":0,"Addr":"10.0.0.1:1","Metadata":"v2"}');
    await put(`${service}/2`, '{"Addr":"10.0.0.2:1","Metadata":{"weight":2,"cores":8,"rack":"7"}}');
    await put(`${service}/3`, '{"Op":0,"Addr":"10.0.0.3:1","Metadata":[1]}');
    for (const bad of [
      '',
      'null',
      '[]',
      '{}',
      '{"Addr":5}',
      '{"Addr":"a"}',
      '{"Addr":"a:1","Metadata":{"weight":0}}',
    ])
      await put(`${service}/bad${bad}`, bad);
    await put(`${service}ping/4`, '{"Addr":"10.0.0.4:1"}');
    const found = await resolver({ log: (line: string) => lines.push(line) }).resolve(
      AbortSignal.timeout(5000),
    );
    expect(found).toEqual([
      { address: '10.0.0.1:1', weight: 1, attributes: { metadata: 'v2' } },
      { address: '10.0.0.2:1', weight: 2, attributes: { rack: '7' } },
      { address: '10.0.0.3:1', weight: 1 },
    ]);
    expect(lines).toHaveLength(7);
    expect(lines[0]).toMatch(/the value of the key "shop\/greeter\/bad" names no server/);
  });

  test('a key whose lease is not renewed leaves the list within TTL + 1 s', async () => {
    const a = await registered();
    const { channel, call } = channelTo(resolver());
    await call();
    const { ID } = await gateway('lease/grant', { TTL: 2 });
    await put(`${service}/x`, '{"Addr":"127.0.0.1:1"}', ID);
    await until(() => known(channel) === sorted(a.address, '127.0.0.1:1'));
    const began = performance.now();
    await until(() => known(channel) === a.address);
    expect(performance.now() - began).toBeLessThan(3000);
    // The lease of the same length is renewed, so it still exists.
    expect(await stored(`${service}/${a.address}`)).toBeDefined();
  });

  test('a server is in the list only while its health is SERVING', async () => {
    const running = await serve();
    const health = addHealth(running.server);
    health.setStatus('', 'NOT_SERVING');
    const { address } = running;
    const registration = register(running.server, { endpoints: server.url, service, address, health });
    const { channel, call } = channelTo(resolver());
    const first = call();
    await until(() => channel.state === 'failing');
    expect(registration.registered).toBe(false);
    health.setStatus('', 'SERVING');
    expect(await first).toBe(address);
    const other = await registered();
    health.setStatus('', 'NOT_SERVING');
    await until(() => known(channel) === other.address && !registration.registered);
  });

  test.each<[string, (key: string) => Promise<unknown>]>([
    ['its lease was revoked', async (key) => gateway('lease/revoke', { ID: await leaseOf(key) })],
    ['its key was deleted', (key) => gateway('kv/deleterange', { key: b64(key) })],
  ])('registers again when %s', async (_, harm) => {
    const a = await registered();
    const key = `${service}/${a.address}`;
    await harm(key);
    expect(await stored(key)).toBeUndefined();
    await expect.poll(() => stored(key), { timeout: 10_000 }).toBeDefined();
  });

  test('when a new server uses the address, it keeps the key when the old one leaves', async () => {
    const old = await registered();
    const next = await serve();
    const registration = register(next.server, { endpoints: server.url, service, address: old.address });
    await registration.ready();
    await old.close();
    expect(await stored(`${service}/${old.address}`)).toBeDefined();
  });

  test('no call fails while etcd is down, or after it has come back empty', async () => {
    const lines: string[] = [];
    const log = (line: string) => lines.push(line);
    const [a, b] = [await registered({ log }), await registered({ log })];
    const { channel, call } = channelTo(resolver({ log }));
    await until(() => known(channel) === sorted(a.address, b.address));
    let failed = 0;
    let stopped = false;
    const load = (async () => {
      while (!stopped) await call().catch(() => ++failed);
    })();
    await server.kill();
    await until(() => channel.addresses.every(({ stale }) => stale));
    // This wait is longer than the time to live.
    await until(() => !a.registered && !b.registered);
    server.empty();
    await server.start();
    await until(() => known(channel) === sorted(a.address, b.address) && a.registered && b.registered);
    stopped = true;
    await load;
    expect(failed).toBe(0);
    expect(lines.join('\n')).toMatch(/register shop\/greeter\/.*: etcd .*; it is tried again/);
  });

  test('a registration that began without etcd is made when etcd is available', async () => {
    await server.kill();
    const running = await serve();
    const { address } = running;
    const registration = register(running.server, {
      endpoints: server.url,
      service,
      address,
      log: () => undefined,
    });
    const { call } = channelTo(resolver());
    const answer = call();
    await server.start();
    await registration.ready();
    expect(await answer).toBe(address);
  });

  test('the shutdown of a server does not wait long for an etcd that hangs', async () => {
    const a = await registered();
    server.freeze(true);
    const began = performance.now();
    await a.server.shutdown();
    expect(performance.now() - began).toBeLessThan(3000);
    server.freeze(false);
  });

  test('the next member is used when one cannot be reached', async () => {
    const endpoints = ['127.0.0.1:1', server.url];
    const a = await registered({ endpoints, log: () => undefined });
    const { call } = channelTo(etcd({ endpoints, service }));
    expect(await call()).toBe(a.address);
  });

  test('one watch serves all channels of a resolver, and ends with the last one', async () => {
    const a = await registered();
    const shared = resolver();
    const [one, two] = [channelTo(shared), channelTo(shared)];
    expect(await one.call()).toBe(a.address);
    await one.channel.close();
    const b = await registered();
    await until(() => known(two.channel) === sorted(a.address, b.address));
    await two.channel.close();
    const three = channelTo(shared);
    await three.call();
    expect(known(three.channel)).toBe(sorted(a.address, b.address));
  });
});

describe('with TLS', () => {
  const authority = new Authority('etcd');
  const files = (name: string, issued: { cert: string; key: string }) => {
    const paths = { cert: join(ends.folder, `${name}.crt`), key: join(ends.folder, `${name}.key`) };
    writeFileSync(paths.cert, issued.cert);
    writeFileSync(paths.key, issued.key);
    return paths;
  };

  const beginAt = async (address: string): Promise<void> => {
    const own = files('server', authority.issue({ addresses: [address] }));
    const ca = join(ends.folder, 'ca.crt');
    writeFileSync(ca, authority.ca);
    await begin(
      ['--cert-file', own.cert, '--key-file', own.key, '--client-cert-auth', '--trusted-ca-file', ca],
      'https',
    );
  };

  test('both sides show their certificates', async () => {
    await beginAt('127.0.0.1');
    const { cert, key } = authority.issue({ subject: 'client' });
    const a = await registered({ ca: authority.ca, cert, key });
    const { call } = channelTo(resolver({ ca: authority.ca, cert, key }));
    expect(await call()).toBe(a.address);
  });

  test.each<[string, string, () => object]>([
    [
      'the authority of etcd is not known',
      '127.0.0.1',
      () => ({ ...authority.issue({}), ca: new Authority('evil').ca }),
    ],
    [
      'the certificate is for another address',
      '127.0.0.2',
      () => ({ ...authority.issue({}), ca: authority.ca }),
    ],
    ['no certificate is shown', '127.0.0.1', () => ({ ca: authority.ca })],
  ])('resolving fails when %s', async (_, address, options) => {
    await beginAt(address);
    const { ca, cert, key } = options() as Record<'ca' | 'cert' | 'key', string>;
    const error = await caught(
      resolver({ ca, cert, key }).resolve(AbortSignal.timeout(5000)) as Promise<never>,
    );
    expect(error.message).toMatch(/UNAVAILABLE: etcd 127\.0\.0\.1:\d+: /);
  });
});

describe('with authentication', () => {
  beforeEach(async () => {
    await begin(['--auth-token-ttl', '1']);
    await gateway('auth/user/add', { name: 'root', password: 'secret' });
    await gateway('auth/user/grant', { user: 'root', role: 'root' });
    await gateway('auth/role/add', { role: 'root' });
    await gateway('auth/user/grant', { user: 'root', role: 'root' });
    await gateway('auth/enable', {});
  });

  test('by name and password works, and a token that has expired is replaced', async () => {
    const secret = { username: 'root', password: 'secret' };
    const lines: string[] = [];
    const a = await registered({ ...secret, ttlMs: 6000, log: (line) => lines.push(line) });
    const { channel, call } = channelTo(resolver(secret));
    expect(await call()).toBe(a.address);
    // The time between renewals is longer than the life of a token.
    const began = performance.now();
    await until(() => performance.now() - began > 7000);
    expect(a.registered).toBe(true);
    expect(lines).toEqual([]);
    // The token has expired during the watch. A new list would come only after a pause, which has grown by
    // now.
    const b = await registered(secret);
    const from = performance.now();
    await until(() => known(channel) === sorted(a.address, b.address));
    expect(performance.now() - from).toBeLessThan(1000);
  });

  test('a server that shuts down leaves the list although its token has expired', async () => {
    const secret = { username: 'root', password: 'secret' };
    // Until its next renewal, the registration does not use its token again.
    const a = await registered({ ...secret, ttlMs: 3_600_000 });
    const b = await registered({ ...secret, ttlMs: 3_600_000 });
    const { channel } = channelTo(resolver(secret));
    await channel.ready();
    const began = performance.now();
    await until(() => performance.now() - began > 2500);
    await b.server.shutdown();
    await until(() => known(channel) === sorted(a.address));
  });

  test.each<[string, object, RegExp]>([
    ['none', {}, /user name is empty/],
    ['a wrong password', { username: 'root', password: 'x' }, /invalid user ID or password/],
  ])('with %s resolving fails', async (_, given, reason) => {
    const error = await caught(resolver(given).resolve(AbortSignal.timeout(5000)) as Promise<never>);
    expect(error.message).toMatch(reason);
    expect(error.code).toBe(Status.INVALID_ARGUMENT);
  });
});
