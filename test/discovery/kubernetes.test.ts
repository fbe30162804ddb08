/** Tests EndpointSlices of an API server: the servers in them, how changes arrive, and possible failures. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { writeFileSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { join } from 'node:path';
import type { Channel } from 'rdma-rpc';
import { type EndpointSlicesOptions, endpointSlices } from 'rdma-rpc/kubernetes';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { caught, until } from '../outcomes.ts';
import { Authority } from '../security/certificates.ts';
import { ends } from '../security/ends.ts';
import { type EndpointGiven, objectOf, type SliceGiven, statusOf } from './api-server.ts';
import { api, resolver, tokenFile } from './api-server-bed.ts';
import { channelTo, known, serve, sorted } from './bed.ts';

vi.mock('../../runtime/discovery/limits.ts', async (original) => ({
  ...(await original<typeof import('../../runtime/discovery/limits.ts')>()),
  registryTimeoutMs: 1000,
  registryPauseMs: { first: 20, max: 200 },
}));

const resolved = (options: Partial<EndpointSlicesOptions> = {}) =>
  resolver(options).resolve(AbortSignal.timeout(30_000)) as Promise<{ address: string; zone?: string }[]>;
const addressesOf = async (options: Partial<EndpointSlicesOptions> = {}): Promise<string> =>
  (await resolved(options)).map(({ address }) => address).join(' ');

const [a, b, c] = ['10.0.0.1', '10.0.0.2', '10.0.0.3'] as const;
const at = (...hosts: string[]): string => sorted(...hosts.map((host) => `${host}:5000`));
const stale = (...hosts: string[]): string => sorted(...hosts.map((host) => `${host}:5000?`));
async function watched(options: Partial<EndpointSlicesOptions> = {}): Promise<Channel> {
  const { channel } = channelTo(resolver(options));
  void channel.ready().catch(() => undefined);
  await until(() => api.watches.length > 0 && channel.addresses.length > 0);
  return channel;
}

describe('a server is', () => {
  const one = (...endpoints: EndpointGiven[]): SliceGiven[] => [{ name: 'one', endpoints }];
  test.each<[string, SliceGiven[], string, object?]>([
    ['a ready endpoint', one({ address: a }, { address: b, ready: false }), `${a}:5000`],
    ['one whose condition is not known', one({ address: a, ready: null }), `${a}:5000`],
    [
      'not one that terminates',
      one({ address: a }, { address: b, ready: false, serving: true, terminating: true }),
      `${a}:5000`,
    ],
    [
      'one that terminates and serves when none is ready',
      one(
        { address: a, ready: false, serving: false },
        { address: b, ready: false, serving: true, terminating: true },
      ),
      `${b}:5000`,
    ],
    ['in several slices', [...one({ address: a }), { name: 'two', endpoints: [b] }], `${a}:5000 ${b}:5000`],
    [
      'counted once, and ready if one slice says so',
      [...one({ address: a, ready: false }), { name: 'two', endpoints: [a, a] }],
      `${a}:5000`,
    ],
    [
      'of one family',
      [{ name: 'six', endpoints: ['fd00::1'], addressType: 'IPv6' }, ...one({ address: a })],
      `${a}:5000`,
    ],
    ['of IPv6', [{ name: 'six', endpoints: ['fd00::1'], addressType: 'IPv6' }], '[fd00::1]:5000'],
    [
      'at the port of a name',
      [
        {
          name: 'one',
          endpoints: [a],
          ports: [
            { name: 'grpc', port: 1 },
            { name: 'http', port: 2 },
          ],
        },
      ],
      `${a}:2`,
      { port: 'http' },
    ],
    ['at a port of a number', one({ address: a }), `${a}:7000`, { port: 7000 }],
    ['none without a valid address', one({ address: 'a b' }, { address: b }), `${b}:5000`],
  ])('%s', async (_, slices, expected, options) => {
    for (const slice of slices) api.set(slice);
    expect(await addressesOf(options)).toBe(expected);
  });

  test.each<[string, EndpointGiven, string | undefined]>([
    ['its own', { address: a, zone: 'x' }, 'x'],
    ['its own, which the hints have', { address: a, zone: 'x', hints: ['y', 'x'] }, 'x'],
    ['that of the hints', { address: a, zone: 'x', hints: ['y'] }, 'y'],
    ['not known', { address: a }, undefined],
  ])('in a zone: %s', async (_, endpoint, zone) => {
    api.set({ name: 'one', endpoints: [endpoint] });
    expect(await resolved()).toEqual([
      { address: `${a}:5000`, weight: 1, zone, attributes: { pod: `pod-${a}`, node: 'node-1' } },
    ]);
  });

  test.each<[string, SliceGiven['ports'], object, RegExp]>([
    [
      'several ports',
      [
        { name: 'grpc', port: 1 },
        { name: 'http', port: 2 },
      ],
      {},
      /the service greeter has several ports; give the option port: grpc 1, http 2/,
    ],
    ['another port', [{ name: 'grpc', port: 1 }], { port: 'rpc' }, /greeter has no port rpc: grpc 1/],
  ])('not found in a service with %s', async (_, ports, options, reason) => {
    api.set({ name: 'one', endpoints: [a], ports: ports! });
    await expect(addressesOf(options)).rejects.toThrow(reason);
  });
});

test('a pod has the doors that the application gives it, and invalid doors are an error', async () => {
  api.set({ name: 'one', endpoints: [a, b] });
  const doors: EndpointSlicesOptions['doors'] = ({ address, attributes }) =>
    address.startsWith(a) ? [`unix:/run/greeter/${attributes!.pod}.sock`] : [];
  expect(await resolved({ doors })).toMatchObject([
    { address: `${a}:5000`, doors: [`unix:/run/greeter/pod-${a}.sock`], attributes: { node: 'node-1' } },
    { address: `${b}:5000`, doors: [] },
  ]);
  await expect(resolved({ doors: () => ['nonsense'] })).rejects.toThrow(/nonsense/);
});

test('the function for doors sees no store of the channel that calls it', async () => {
  api.set({ name: 'one', endpoints: [a] });
  const user = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const doors = (): string[] => (seen.push(user.getStore()) > 0 ? [] : ['never']);
  await user.run('alice', () => watched({ doors }));
  expect(new Set(seen)).toEqual(new Set([undefined]));
});

test('a list in several pages is read completely', async () => {
  api.pageSize = 2;
  for (let i = 1; i <= 5; ++i) api.set({ name: `slice-${i}`, endpoints: [`10.0.0.${i}`] });
  expect((await resolved()).map(({ address }) => address)).toHaveLength(5);
  expect(api.lists.map((query) => query.get('continue'))).toEqual([null, '2', '4']);
  expect(api.lists[0]!.get('labelSelector')).toBe('kubernetes.io/service-name=greeter');
});

describe('a watch', () => {
  beforeEach(() => api.set({ name: 'one', endpoints: [a, b] }));

  test('begins at the version of the list, and delivers each change', async () => {
    const running = await serve();
    const { port } = new URL(`http://${running.address}`);
    const { channel, call } = channelTo(resolver());
    void channel.ready().catch(() => undefined);
    await until(() => api.watches.length === 1);
    const { query } = api.watch;
    expect([query.get('resourceVersion'), query.get('allowWatchBookmarks')]).toEqual(['101', 'true']);
    expect(Number(query.get('timeoutSeconds'))).toBeGreaterThanOrEqual(192);
    expect(Number(query.get('timeoutSeconds'))).toBeLessThanOrEqual(288);
    api.set({ name: 'two', endpoints: [c] });
    await until(() => known(channel) === at(a, b, c));
    api.set({ name: 'one', endpoints: [b] });
    await until(() => known(channel) === at(b, c));
    api.delete('two');
    await until(() => known(channel) === at(b));
    api.set({ name: 'one', endpoints: ['127.0.0.1'], ports: [{ port: Number(port) }] });
    expect(await call()).toBe(running.address);
    expect(api.lists).toHaveLength(1);
  });

  test('keeps the endpoints of another slice when one slice is deleted', async () => {
    api.set({ name: 'two', endpoints: [b, c] });
    const channel = await watched();
    api.delete('one');
    await until(() => known(channel) === at(b, c));
  });

  test.each<[string, () => void]>([
    ['that was cut', () => api.watch.cut()],
    [
      'that was cut within a line',
      () => {
        api.watch.raw('{"type":"ADDED","obj');
        api.watch.cut();
      },
    ],
    ['that ended at once', () => api.watch.end()],
  ])('%s is resumed from the last version, which a bookmark may have brought', async (_, harm) => {
    const channel = await watched();
    api.set({ name: 'two', endpoints: [c] });
    api.watch.event('BOOKMARK', { kind: 'EndpointSlice', metadata: { resourceVersion: '150' } });
    await until(() => known(channel) === at(a, b, c));
    harm();
    await until(() => api.watches.length === 2);
    expect(api.watch.query.get('resourceVersion')).toBe('150');
    expect(api.lists).toHaveLength(1);
    await until(() => known(channel) === at(a, b, c));
    api.delete('two');
    await until(() => known(channel) === at(a, b));
  });

  test('that is silent is resumed', async () => {
    const channel = await watched({ silenceMs: 300 });
    await until(() => api.watches.length === 3);
    expect(known(channel)).toBe(at(a, b));
    expect(api.lists).toHaveLength(1);
    await until(() => api.watches.slice(0, 2).every(({ closed }) => closed));
  });

  test('with bookmarks is not silent', async () => {
    await watched({ silenceMs: 1000 });
    const began = performance.now();
    let next = began;
    await until(() => {
      if (performance.now() > next) {
        api.watch.event('BOOKMARK', { metadata: { resourceVersion: '150' } });
        next += 200;
      }
      return performance.now() - began > 2000;
    });
    expect(api.watches).toHaveLength(1);
  });

  test.each<[string, () => void]>([
    ['410 as an event', () => api.watch.event('ERROR', statusOf(410, 'too old resource version: 101 (200)'))],
    ['another error as an event', () => api.watch.event('ERROR', statusOf(500, 'etcd is gone'))],
    ['garbage', () => api.watch.raw('garbage\n')],
    ['a line that is no event', () => api.watch.raw('[]\n')],
    ['an event without an object', () => api.watch.raw('{"type":"ADDED"}\n')],
    ['an object without a version', () => api.watch.event('ADDED', { metadata: { name: 'x' } })],
    ['another object', () => api.watch.event('ADDED', { metadata: { name: 'x', resourceVersion: '5' } })],
    ['an unknown event', () => api.watch.event('RENAMED', objectOf({ name: 'x', endpoints: [] }, 5))],
  ])('that brings %s lists again, and the list is never stale or empty', async (_, harm) => {
    const channel = await watched();
    const seen = new Set<string>();
    api.slices.set('one', { name: 'one', endpoints: [b, c] });
    harm();
    await until(() => {
      seen.add(known(channel));
      return known(channel) === at(b, c);
    });
    expect([...seen].sort()).toEqual([at(a, b), at(b, c)].sort());
    expect(api.lists.length).toBe(2);
  });

  test('that is refused with 410 lists again', async () => {
    const channel = await watched();
    api.slices.set('one', { name: 'one', endpoints: [c] });
    api.answerWatch = (_, response) => {
      api.answerWatch = undefined;
      response.writeHead(410).end(JSON.stringify(statusOf(410, 'too old resource version')));
    };
    api.watch.cut();
    await until(() => known(channel) === at(c));
    expect(api.lists).toHaveLength(2);
  });

  test('uses a new token from the file', async () => {
    const channel = await watched();
    api.token = 'second';
    writeFileSync(tokenFile, 'second\n');
    api.watch.cut();
    await until(() => api.watches.length === 2);
    expect(api.watch.token).toBe('second');
    expect(known(channel)).toBe(at(a, b));
  });
});

describe('the last list stays in use, and is stale,', () => {
  beforeEach(() => api.set({ name: 'one', endpoints: [a, b] }));
  const silent = (): void => undefined;

  test.each<[string, () => unknown]>([
    ['when the API server is gone', () => api.stop()],
    ['when the token is not valid any more', () => (api.token = 'other')],
    [
      'when the account may not watch',
      () => (api.answerWatch = (_, response) => void response.writeHead(403).end('{"message":"forbidden"}')),
    ],
    ['when watches are not answered', () => (api.answerWatch = silent)],
    [
      'when the list does not end',
      () => {
        api.answerWatch = (_, response) => void response.writeHead(410).end();
        api.answerList = (_, response) => void response.writeHead(200).write('{"items":[');
      },
    ],
    [
      'when the list is no list',
      () => {
        api.answerWatch = (_, response) => void response.writeHead(410).end();
        api.answerList = (_, response) => void response.end('{}');
      },
    ],
    [
      'when there is no slice any more',
      () => {
        for (const name of [...api.slices.keys()]) api.delete(name);
      },
    ],
  ])('%s', async (_, harm) => {
    const channel = await watched();
    const { cut } = api.watch;
    await harm();
    cut();
    await until(() => known(channel) === stale(a, b));
  });

  test('until the API server answers again', async () => {
    const channel = await watched();
    await api.stop();
    await until(() => known(channel) === stale(a, b));
    await api.start();
    await until(() => known(channel) === at(a, b));
    expect(api.lists).toHaveLength(1);
  });
});

describe('resolving fails with the reason', () => {
  test.each<[string, () => Partial<EndpointSlicesOptions>, RegExp]>([
    [
      'for a wrong token',
      () => {
        api.token = 'x';
        return {};
      },
      /the API server answered 401: Unauthorized/,
    ],
    ['for another namespace', () => ({ namespace: 'bank' }), /answered 404: the server could not find/],
    ['for an unknown authority', () => ({ ca: new Authority('evil').ca }), /certificate|signature/i],
    ['without a token', () => ({ tokenFile: join(ends.folder, 'none') }), /ENOENT/],
    [
      'for a list without end',
      () => {
        api.answerList = (_, response) =>
          void response.end(JSON.stringify({ metadata: { continue: 'more' }, items: [] }));
        return {};
      },
      /has more than 200 pages/,
    ],
    [
      'for another protocol',
      () => {
        api.answerList = (request) =>
          void request.socket.write(
            'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
          );
        return {};
      },
      /switched to another protocol/,
    ],
    [
      'for half an answer',
      () => {
        api.answerList = (request) => void request.socket.destroy();
        return {};
      },
      /hang up/,
    ],
  ])('%s', async (_, options, reason) => {
    const error = await caught(resolved(options()) as Promise<never>);
    expect(error.message).toMatch(reason);
  });
});

test('a KubeConfig has the address of the API server, and the credentials for it', async () => {
  api.set({ name: 'one', endpoints: [a] });
  const kubeConfig = {
    getCurrentCluster: () => ({ server: `${api.url}/` }),
    applyToHTTPSOptions: async (options: RequestOptions) => {
      options.ca = api.authority.ca;
      options.headers = { Authorization: 'Bearer first' };
    },
  };
  const options = { service: 'greeter', namespace: 'shop', kubeConfig };
  const found = await endpointSlices(options).resolve(AbortSignal.timeout(30_000));
  expect(found).toMatchObject([{ address: `${a}:5000` }]);
  kubeConfig.getCurrentCluster = () => null as never;
  await expect(endpointSlices(options).resolve(AbortSignal.timeout(30_000))).rejects.toThrow(
    /the KubeConfig has no current cluster/,
  );
});
