/**
 * Tests an API server that sends very many slices, very many changes, an event without end, and lists that
 * are none.
 */
import type { ServerAddress } from 'rdma-rpc';
import { expect, test } from 'vitest';
import { caught, until } from '../outcomes.ts';
import type { SliceGiven } from './api-server.ts';
import { api, resolver } from './api-server-bed.ts';
import { channelTo, known } from './bed.ts';

const hostOf = (i: number): string => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`;

test('many changes of a long list are delivered together', async () => {
  const size = 1000;
  const slices = Array.from({ length: size }, (_, i) => ({ name: `slice-${i}`, endpoints: [hostOf(i)] }));
  for (const slice of slices) api.slices.set(slice.name, slice);
  let pods = 0;
  const doors = (_: ServerAddress): string[] => {
    ++pods;
    return [];
  };
  const { channel } = channelTo(resolver({ doors }), { subset: { size: 2, clientId: 'me' } });
  void channel.ready().catch(() => undefined);
  await until(() => api.watches.length === 1 && channel.addresses.length === 2);
  pods = 0;
  for (const slice of slices) api.set({ ...slice, endpoints: ['127.0.0.1'] });
  await until(() => known(channel) === '127.0.0.1:5000');
  // With a delivery for each change, this number would be half a million.
  expect(pods).toBeLessThan(size * 50);
});

test('more endpoints than a channel can list are an error that names the limit', async () => {
  const endpoints = Array.from({ length: 1000 }, (_, i) => i);
  for (let i = 0; i < 11; ++i)
    api.slices.set(`${i}`, { name: `${i}`, endpoints: endpoints.map((j) => hostOf(1000 * i + j)) });
  const error = await caught(resolver().resolve(AbortSignal.timeout(30_000)) as Promise<never>);
  expect(error.message).toBe('the service greeter has more than 10000 endpoints, the limit of a list');
});

test.each<[string, readonly SliceGiven[]]>([
  [
    'more endpoints than a channel can list',
    Array.from({ length: 11 }, (_, i) => ({
      name: `slice-${i}`,
      endpoints: Array.from({ length: 1000 }, (__, j) => hostOf(1000 * i + j)),
    })),
  ],
  [
    'several ports',
    [
      {
        name: 'slice-0',
        endpoints: ['10.0.0.1'],
        ports: [
          { name: 'a', port: 1 },
          { name: 'b', port: 2 },
        ],
      },
    ],
  ],
])('a service that begins with %s is found once it has changed', async (_, slices) => {
  for (const slice of slices) api.slices.set(slice.name, slice);
  const { channel } = channelTo(resolver(), { subset: { size: 2, clientId: 'me' } });
  await caught(channel.ready());
  await until(() => api.watches.length === 1);
  for (const { name } of slices.slice(1)) api.delete(name);
  api.set({ name: 'slice-0', endpoints: ['127.0.0.1'] });
  await until(() => known(channel) === '127.0.0.1:5000');
});

test('an event without end ends its watch, and the next watch delivers the changes', async () => {
  api.set({ name: 'one', endpoints: ['10.0.0.1'] });
  const { channel } = channelTo(resolver());
  void channel.ready().catch(() => undefined);
  await until(() => api.watches.length === 1 && channel.addresses.length === 1);
  const { watch } = api;
  watch.raw(`{"type":"ADDED","object":"${'x'.repeat(9 * 2 ** 20)}`);
  await until(() => watch.closed);
  api.delete('one');
  api.set({ name: 'two', endpoints: ['10.0.0.2'] });
  await until(() => known(channel) === '10.0.0.2:5000');
});

test.each([
  ['null', /^the API server sent no JSON object: "null"$/],
  ['{"items":[],"metadata":null}', /^the API server sent an object without a resourceVersion$/],
  ['{"items":[null],"metadata":{}}', /^the API server sent an object that is no EndpointSlice$/],
])('the list %s is an error that says what is wrong', async (body, reason) => {
  api.answerList = (_, response) => void response.end(body);
  const error = await caught(resolver().resolve(AbortSignal.timeout(30_000)) as Promise<never>);
  expect(error.message).toMatch(reason);
});
