/**
 * Tests the resolver of etcd against an etcd that compacts its history, cuts connections, is slow, is silent,
 * or sends invalid data.
 */
import { createServer } from 'node:net';
import { createServer as createRpcServer } from 'rdma-rpc';
import { etcd, register } from 'rdma-rpc/etcd';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { caught, until } from '../outcomes.ts';
import { afterwards, channelTo, known, sorted } from './bed.ts';
import { deleteOf, kv, putOf, ScriptedEtcd } from './etcd-script.ts';

// The tests shorten the time after which a silent etcd counts as failed.
vi.mock('../../runtime/discovery/limits.ts', async (original) => ({
  ...(await original<typeof import('../../runtime/discovery/limits.ts')>()),
  etcdSilenceMs: { ask: 100, max: 1000 },
  registryTimeoutMs: 1000,
}));

const [a, b, c] = ['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:3'] as const;
let script: ScriptedEtcd;
let lines: string[];
beforeEach(async () => {
  lines = [];
  script = await new ScriptedEtcd().start();
  afterwards(() => script.stop());
});
const resolver = (endpoints: string | string[] = script.url) =>
  etcd({ endpoints, service: 's', log: (line) => lines.push(line) });
async function watched(...addresses: string[]) {
  script.list = addresses;
  const { channel } = channelTo(resolver());
  void channel.ready().catch(() => undefined);
  await until(() => known(channel) === sorted(...addresses) && script.watches.length === 1);
  await until(() => script.watch.requests.length > 0);
  return channel;
}

test('watches from the revision after the list, and applies each change', async () => {
  const channel = await watched(a, b);
  expect(script.watch.requests[0]).toMatchObject({
    requestUnion: { case: 'createRequest', value: { startRevision: 11n } },
  });
  expect(script.watch.metadata.get('hasleader')).toEqual(['true']);
  script.watch.write({ events: [putOf(c), deleteOf(a)] });
  await until(() => known(channel) === sorted(b, c));
  // A change is applied when all parts of its revision have come.
  script.watch.write({ events: [deleteOf(b), deleteOf(c)], fragment: true });
  script.watch.write({ events: [putOf(a)] });
  await until(() => known(channel) === a);
  expect(script.lists).toBe(1);
});

describe('lists again', () => {
  test.each<[string, () => void]>([
    ['when the revision was compacted', () => script.watch.write({ compactRevision: 12n, canceled: true })],
    ['when the watch was cancelled', () => script.watch.write({ canceled: true, cancelReason: 'no leader' })],
    ['when the stream ended', () => script.watch.end()],
    ['when the stream failed', () => script.watch.fail('gone')],
  ])('%s, and the list was never stale or empty', async (_, harm) => {
    const channel = await watched(a, b);
    const seen = new Set<string>();
    script.list = [b, c];
    script.revision = 5n;
    harm();
    await until(() => {
      seen.add(known(channel));
      return known(channel) === sorted(b, c);
    });
    expect([...seen].sort()).toEqual([sorted(a, b), sorted(b, c)].sort());
    await until(() => script.watches.length === 2 && script.watch.requests.length > 0);
    expect(script.watch.requests[0]).toMatchObject({ requestUnion: { value: { startRevision: 6n } } });
  });

  test('when nothing has arrived for long, although a sign of life was requested', async () => {
    const channel = await watched(a);
    const [first] = script.watches;
    script.list = [b];
    await until(() => known(channel) === b);
    expect(first!.requests.slice(1).map(({ requestUnion }) => requestUnion.case)).toContain(
      'progressRequest',
    );
  });

  test('not while signs of life come', async () => {
    await watched(a);
    const began = performance.now();
    let answered = 1;
    await until(() => {
      const { requests, write } = script.watch;
      for (; answered < requests.length; ++answered) write({ header: { revision: 11n } });
      return performance.now() - began > 2000;
    });
    expect(script.lists).toBe(1);
  });
});

describe('the last list stays in use, and is stale,', () => {
  test.each<[string, () => void]>([
    [
      'when lists fail',
      () => (script.list = (reply) => reply({ code: 14, details: 'etcdserver: no leader' })),
    ],
    ['when lists are not answered', () => (script.list = () => undefined)],
    ['when lists are empty', () => (script.list = [])],
    ['when etcd is gone', () => script.stop()],
  ])('%s', async (_, harm) => {
    const channel = await watched(a, b);
    harm();
    script.watch.end();
    await until(() => channel.addresses.some(({ stale }) => stale));
    expect(known(channel)).toBe(sorted(`${a}?`, `${b}?`));
  });

  test('until etcd answers again', async () => {
    const channel = await watched(a);
    script.list = (reply) => reply({ code: 14, details: 'no leader' });
    script.watch.end();
    await until(() => known(channel) === `${a}?`);
    script.list = [a, b];
    await until(() => known(channel) === sorted(a, b));
  });
});

test('an invalid entry does not affect the other entries', async () => {
  const channel = await watched(a, b);
  script.watch.write({ events: [{ type: 0 }, { type: 7, kv: kv(c) }, { type: 0, kv: kv(b, '{"Addr":') }] });
  await until(() => known(channel) === sorted(a, c));
  expect(lines).toEqual(['etcd: s: the value of the key "s/127.0.0.1:2" names no server']);
});

test('a list of more than 4 MiB, the default limit of grpc-js, is read', async () => {
  const metadata = { motd: 'x'.repeat(2 ** 20) };
  const addresses = Array.from({ length: 5 }, (_, i) => `127.0.0.1:${i + 1}`);
  script.list = (reply) =>
    reply(null, {
      header: { revision: 10n },
      kvs: addresses.map((Addr) => kv(Addr, JSON.stringify({ Addr, Metadata: metadata }))),
    });
  const { channel } = channelTo(resolver());
  void channel.ready().catch(() => undefined);
  await until(() => known(channel) === sorted(...addresses));
});

test('a server that is not etcd is an error within the time limit', async () => {
  const other = createServer((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nhello')).listen(0, '127.0.0.1');
  afterwards(() => other.close());
  await until(() => other.listening);
  const { port } = other.address() as { port: number };
  const resolved = resolver(`127.0.0.1:${port}`).resolve(AbortSignal.timeout(5000)) as Promise<never>;
  const error = await caught(resolved);
  expect(error.message).toMatch(/^(UNAVAILABLE|DEADLINE_EXCEEDED): etcd 127\.0\.0\.1:\d+: /);
});

test.each<[object, RegExp]>([
  [{}, /etcd: service is missing: give the name/],
  [{ service: '/' }, /etcd: service is missing/],
  [{ service: 's' }, /etcd: endpoints are missing: give the addresses/],
  [{ service: 's', endpoints: [] }, /endpoints are missing/],
  [{ service: 's', endpoints: 'etcd' }, /endpoints: etcd is none; give https:\/\/host:port/],
  [{ service: 's', endpoints: 'a:1', ca: 'x' }, /a:1 would be used without TLS; give https:\/\/a:1/],
  [{ service: 's', endpoints: 'https://a:1', cert: 'x' }, /cert and key belong together/],
  [{ service: 's', endpoints: 'a:1', lease: 1 }, /there is no option lease/],
])('options that cannot be used: %j', (options, reason) => {
  expect(() => etcd(options as never)).toThrow(reason);
});

test.each<[object, RegExp]>([
  [{}, /register: service is missing: give the name/],
  [{ service: 's' }, /invalid address|address/],
  [{ service: 's', address: '0.0.0.0:5000' }, /0\.0\.0\.0:5000 is no host that clients can reach/],
  [{ service: 's', address: '[::]:5000' }, /is no host that clients can reach/],
  [{ service: 's', address: 'a:1', weight: 0 }, /weight 0 is not a number from 0.001/],
  [
    { service: 's', address: 'a:1', attributes: { cores: 8 } },
    /the attribute cores must be a string, but is 8/,
  ],
  [{ service: 's', address: 'a:1', ttlMs: 1000 }, /ttlMs: 1000 is not an integer from 2000/],
  [{ service: 's', address: 'a:1' }, /endpoints are missing/],
])('a registration with %j is refused', (options, reason) => {
  expect(() => register(createRpcServer(), options as never)).toThrow(reason);
});
