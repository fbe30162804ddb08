/**
 * Every policy is tested with every way in which a server can end. After the first call that fails, the
 * channel makes no call to that server until the server is back. Therefore all later calls succeed as long as
 * another server runs.
 */
import { type Channel, type ChannelOptions, createClient } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Random } from '../states/random.ts';
import { Bed, until } from './bed.ts';
import { SteadyLoad } from './load.ts';
import { addresses, metadata, policies, serversOf } from './policy-table.ts';

const [a] = addresses;

let bed: Bed;
beforeEach(() => {
  bed = new Bed();
  const random = new Random(7);
  vi.spyOn(Math, 'random').mockImplementation(() => random.below(2 ** 30) / 2 ** 30);
});
afterEach(async () => {
  await bed.close();
  vi.restoreAllMocks();
});

/** Ends the server at `a`; afterwards no server listens there. */
const ways: readonly [string, () => Promise<void>][] = [
  [
    'its process is killed: the connection is reset',
    async () => {
      const { server } = bed.at(a);
      bed.running.delete(a);
      bed.far(a).destroy();
      await server.shutdown({ graceMs: 0 });
    },
  ],
  ['it shuts down without a grace period', () => bed.stop(a)],
  ['it drains, and ends calls that take longer', () => bed.stop(a, 5)],
  [
    'it sends nonsense, so that this side ends the connection',
    async () => {
      const { server } = bed.at(a);
      bed.running.delete(a);
      bed.far(a).write(Buffer.from('nonsense'.repeat(100)));
      await until(() => server.sessionCount === 0);
      await server.shutdown({ graceMs: 0 });
    },
  ],
];

describe.each(policies)('%s', (_, row) => {
  const open = (more: ChannelOptions = {}): Channel =>
    bed.channel(serversOf(row), { backoffMs: 1, backoffMaxMs: 1, ...row.options, ...more });

  test.each(ways)('%s', async (__, end) => {
    bed.start(...addresses);
    // Calls at `a` take a while, so that some are under way when the server ends.
    bed.unwell.set(a, async () => {
      await new Promise((resolve) => setImmediate(resolve));
      return { text: a };
    });
    const channel = open();
    await channel.ready();
    if (row.options.loadBalancing !== 'pick-first')
      await until(() => channel.addresses.every(({ state }) => state === 'ready'));
    const client = createClient(EchoDefinition, channel);
    const load = new SteadyLoad(() => client.fetch({}, { metadata }));
    await until(() => bed.at(a).log.started > 20);
    await end();
    const atEnd = load.made.length;
    await until(() => load.made.length > atEnd + 200);
    await load.end();
    expect(load.late).toEqual([]);
    expect(channel.addresses[0]!.state).not.toBe('ready');

    // The server is back and gets calls again, except with pick-first, which stays with its current server.
    bed.start(a);
    if (row.options.loadBalancing === 'pick-first') return;
    while (bed.at(a).log.started === 0) await client.fetch({}, { metadata });
    expect(channel.addresses[0]!.state).toBe('ready');
  });
});
