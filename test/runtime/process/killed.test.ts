/** Server processes are killed under load: after the first call that fails, no call goes to that server. */
import { type Channel, type ChannelOptions, createChannel, createClient } from 'rdma-rpc';
import { afterEach, expect, test } from 'vitest';
import { SteadyLoad } from '../../channel/load.ts';
import { until } from '../../outcomes.ts';
import { EchoDefinition } from '../gen/echo.rdma.ts';
import { ServerProcess } from './processes.ts';

let servers: ServerProcess[] = [];
let channel: Channel | undefined;
afterEach(async () => {
  await channel?.close();
  for (const { child } of servers) child.kill('SIGKILL');
  servers = [];
});

const hashed: ChannelOptions = {
  loadBalancing: 'consistent-hash',
  consistentHash: { metadataKey: 'user' },
};
test.each<['shm' | 'tcp', ChannelOptions]>([
  ['shm', { loadBalancing: 'round-robin' }],
  ['shm', { loadBalancing: 'least-request' }],
  ['shm', hashed],
  ['tcp', { loadBalancing: 'round-robin' }],
  ['tcp', { loadBalancing: 'pick-first' }],
])('over %s with %j', async (fabric, options) => {
  for (let i = 0; i < 3; ++i) servers.push(await ServerProcess.start());
  const addresses = servers.map(({ address }) => address);
  channel = createChannel(addresses, { fabric, ...options });
  await channel.ready();
  const first = options.loadBalancing === 'pick-first';
  await until(() => channel!.addresses.filter(({ state }) => state === 'ready').length === (first ? 1 : 3));
  const client = createClient(EchoDefinition, channel);
  let user = 0;
  const load = new SteadyLoad(() => client.echo({}, { metadata: { user: String(++user) } }));
  await until(() => load.made.length > 500);
  await servers[0]!.kill();
  await until(() => channel!.addresses[0]!.state !== 'ready');
  const then = load.made.length;
  await until(() => load.made.length > then + 500);
  await load.end();
  expect(load.late).toEqual([]);
});
