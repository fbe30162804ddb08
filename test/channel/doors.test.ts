/**
 * Tests a server with several doors: the tests check which door a channel uses, what happens when one cannot
 * be reached, and that the server is counted once.
 */
import {
  type Channel,
  type ChannelOptions,
  createChannel,
  createClient,
  type Resolver,
  RpcError,
  type ServerAddress,
  Status,
} from 'rdma-rpc';
import { addHealth, healthCheck } from 'rdma-rpc/health';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Doors } from '../../runtime/client/connections/doors.ts';
import type { ReadyConnection } from '../../runtime/client/connections/endpoint.ts';
import type { LocalSide } from '../../runtime/control/handshake/session-setup.ts';
import { comeAgainIn } from '../../runtime/core/errors/pushback.ts';
import { RpcServer } from '../../runtime/server/server.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, caught, until } from './bed.ts';

const a: ServerAddress = { address: 'a:1', doors: ['a-unix', 'a-rdma'] };
const b: ServerAddress = { address: 'b:1', doors: ['b-unix'] };
const quick = { backoffMs: 1, backoffMaxMs: 1 } as const;

let bed: Bed;
const others: RpcServer[] = [];
beforeEach(() => {
  bed = new Bed();
});
afterEach(async () => {
  await bed.close();
  for (const server of others.splice(0)) await server.shutdown({ graceMs: 0 });
});

/** Starts a server with all of its doors open. */
function start({ address, doors = [] }: ServerAddress): void {
  bed.start(address);
  for (const door of doors) bed.running.set(door, bed.at(address));
}
const shut = (door: string): boolean => bed.running.delete(door);
/** Starts a server that has no fabric in common with the channel. */
function startWrong(door: string): void {
  const server = new RpcServer({}, ['shm']).add(EchoDefinition, {});
  others.push(server);
  bed.running.set(door, { server, log: { started: 0, aborted: [] } });
}
const doorsOf = (channel: Channel): unknown[] => channel.addresses.map(({ door }) => door);
const call = async (channel: Channel): Promise<string> =>
  (await createClient(EchoDefinition, channel).fetch({}, { waitForReady: true })).text!;
async function answering(channel: Channel, calls: number): Promise<string> {
  let who = '';
  for (let i = 0; i < calls; ++i) who += (await call(channel))[0];
  return [...who].sort().join('');
}

describe('which door is taken', () => {
  test.each<[string, () => void, string, string[]]>([
    ['all are open', () => undefined, 'a-unix', ['a-unix']],
    ['the first one is shut', () => shut('a-unix'), 'a-rdma', ['a-unix', 'a-rdma']],
    [
      'only the address itself is open',
      () => [shut('a-unix'), shut('a-rdma')],
      'a:1',
      ['a-unix', 'a-rdma', 'a:1'],
    ],
    ['no fabric in common at the first one', () => startWrong('a-unix'), 'a-rdma', ['a-unix', 'a-rdma']],
  ])('%s', async (_, prepare, door, dialled) => {
    const lines: string[] = [];
    start(a);
    prepare();
    const channel = bed.channel([a], { connectTimeoutMs: 60_000, log: (line) => lines.push(line) });
    await channel.ready();
    expect(await call(channel)).toBe('a:1');
    expect(doorsOf(channel)).toEqual([door]);
    expect(bed.dialled).toEqual(dialled);
    // The log names the doors that were passed over, and the reason for each.
    const said = lines.filter((line) => line.startsWith('a:1: connected by'));
    expect(said).toHaveLength(dialled.length > 1 ? 1 : 0);
    for (const shown of dialled) if (dialled.length > 1) expect(said[0]).toContain(shown);
  });

  test('an address that is one of its own doors is tried in its place', async () => {
    const given = { address: 'a:1', doors: ['a:1', 'a-unix'] };
    start(given);
    const channel = bed.channel([given]);
    await channel.ready();
    expect(doorsOf(channel)).toEqual(['a:1']);
  });

  test('when all doors are shut, the error names each', async () => {
    const error = await caught(createClient(EchoDefinition, bed.channel([a])).fetch({}));
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    expect(error.message).toMatch(
      /cannot connect to a:1: none of its 3 addresses can be reached: a-unix: nobody listens at a-unix; a-rdma: nobody listens at a-rdma; a:1: nobody listens at a:1/,
    );
  });

  test('the next connection uses a door that opens again', async () => {
    start(a);
    shut('a-unix');
    const channel = bed.channel([a], quick);
    await channel.ready();
    expect(doorsOf(channel)).toEqual(['a-rdma']);
    bed.running.set('a-unix', bed.at('a:1'));
    bed.far('a-rdma').destroy();
    await until(() => channel.addresses[0]!.state !== 'ready');
    expect(await call(channel)).toBe('a:1');
    expect(doorsOf(channel)).toEqual(['a-unix']);
  });

  test('a server that drains may come back behind another door', async () => {
    start(a);
    const channel = bed.channel([a], quick);
    await channel.ready();
    await bed.stop('a:1', 1000);
    for (const door of a.doors!) shut(door);
    await until(() => channel.addresses[0]!.state !== 'ready');
    const answer = call(channel);
    bed.start('a:1');
    bed.running.set('a-rdma', bed.at('a:1'));
    expect(await answer).toBe('a:1');
    await until(() => channel.addresses[0]!.state === 'ready');
    expect(['a-rdma', 'a:1']).toContain(doorsOf(channel)[0]);
  });
});

describe('the server counts once', () => {
  async function both(options: ChannelOptions = {}): Promise<Channel> {
    start(a);
    start(b);
    const channel = bed.channel([a, b], { loadBalancing: 'round-robin', ...options });
    await channel.ready();
    await until(() => channel.addresses.every(({ state }) => state === 'ready'));
    return channel;
  }

  test('for policies', async () => {
    const channel = await both();
    expect(await answering(channel, 8)).toBe('aaaabbbb');
    expect(channel.addresses.map(({ address }) => address)).toEqual(['a:1', 'b:1']);
    expect(bed.dialled.sort()).toEqual(['a-unix', 'b-unix']);
  });

  test('for subsets, whatever the number of its doors', async () => {
    for (const each of [a, b]) start(each);
    const channel = bed.channel([a, b], { subset: { size: 1, clientId: 'x' } });
    await channel.ready();
    expect(channel.addresses).toHaveLength(1);
    expect(bed.dialled).toHaveLength(1);
  });

  test('for ejection: no other door of an ejected server is tried', async () => {
    const channel = await both({ outlierDetection: { badAnswersMax: 3 } });
    bed.unwell.set('a:1', () => Promise.reject(new RpcError(Status.INTERNAL, 'unwell')));
    const client = createClient(EchoDefinition, channel);
    for (let bad = 0, i = 0; bad < 3 && i < 100; ++i) await client.fetch({}).catch(() => ++bad);
    expect(channel.addresses.map(({ state }) => state)).toEqual(['ejected', 'ready']);
    expect(await answering(channel, 6)).toBe('bbbbbb');
    expect(bed.dialled).toHaveLength(2);
  });

  test('for health: a server that does not serve is left out, whatever doors it has', async () => {
    start(a);
    start(b);
    const health = addHealth(bed.at('a:1').server);
    const channel = bed.channel([a, b], { loadBalancing: 'round-robin', healthCheck: healthCheck() });
    await channel.ready();
    await until(() => channel.addresses.every(({ state }) => state === 'ready'));
    health.setStatus('', 'NOT_SERVING');
    await until(() => channel.addresses[0]!.state === 'unhealthy');
    expect(await answering(channel, 4)).toBe('bbbb');
    expect(bed.dialled).toHaveLength(2);
  });

  test('for a registry: new doors of a known address do not close its connection', async () => {
    // The addresses in a resolver's list are checked, so the doors have real names.
    const before = { address: 'a:1', doors: ['unix:/old'] };
    start(before);
    let push!: (servers: readonly ServerAddress[]) => void;
    const resolver: Resolver = {
      resolve: async () => [before],
      watch: (onChange) => {
        push = onChange;
        return () => undefined;
      },
    };
    const channel = bed.channel(resolver, quick);
    await channel.ready();
    bed.running.set('unix:/new', bed.at('a:1'));
    push([{ address: 'a:1', doors: ['unix:/new'] }]);
    await until(() => channel.addresses[0]!.doors![0] === 'unix:/new');
    expect([channel.addresses[0]!.state, ...doorsOf(channel)]).toEqual(['ready', 'unix:/old']);
    bed.far('unix:/old').destroy();
    await until(() => channel.addresses[0]!.state !== 'ready');
    await call(channel);
    expect(doorsOf(channel)).toEqual(['unix:/new']);
  });
});

test('the other doors of an overloaded server are not tried', async () => {
  const tried: string[] = [];
  const doors = new Doors(
    (door) => () => {
      tried.push(door);
      const trailer = comeAgainIn(500);
      return Promise.reject(new RpcError(Status.UNAVAILABLE, 'too many handshakes', { trailer }));
    },
    1000,
  );
  doors.update([{ weight: 1, ...a }]);
  const attempt: Promise<ReadyConnection> = doors.open('a:1')({} as LocalSide, new AbortController().signal);
  await expect(attempt).rejects.toThrow('too many handshakes');
  expect(tried).toEqual(['a-unix']);
});

test('a door that never answers is left after its share of the time', async () => {
  const tried: string[] = [];
  const found = { connection: {} } as ReadyConnection;
  const lines: string[] = [];
  const doors = new Doors(
    (door) => (_, signal) => {
      tried.push(door);
      if (door === 'a-rdma') return Promise.resolve(found);
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    },
    30,
  );
  doors.update([{ weight: 1, ...a }]);
  const side = { log: (line) => lines.push(line()) } as Pick<LocalSide, 'log'> as LocalSide;
  expect(await doors.open('a:1')(side, new AbortController().signal)).toBe(found);
  expect(tried).toEqual(['a-unix', 'a-rdma']);
  expect(doors.of(found.connection)).toBe('a-rdma');
  expect(lines).toEqual([
    expect.stringMatching(
      /a:1: connected by a-rdma; without a-unix: no answer within \d+ ms, which is its part/,
    ),
  ]);
});

test('each attempt knows its time, which RDMA devices must not use up', async () => {
  const times: (readonly [string, number | undefined])[] = [];
  const doors = new Doors(
    (door) =>
      ({ attemptMs }) => {
        times.push([door, attemptMs]);
        return Promise.reject(new RpcError(Status.UNAVAILABLE, 'closed'));
      },
    3_000_000,
  );
  doors.update([{ weight: 1, ...a }]);
  for (const address of ['a:1', 'z:1'])
    await caught(doors.open(address)({} as LocalSide, new AbortController().signal));
  // The first door gets a third of the time, and each further door its part of the rest. A server with one
  // address gets all of it.
  expect(times.map(([door, ms]) => [door, Math.round(ms! / 100_000)])).toEqual([
    ['a-unix', 10],
    ['a-rdma', 15],
    ['a:1', 30],
    ['z:1', 30],
  ]);
});

test('an abandoned attempt tries no further door', async () => {
  const tried: string[] = [];
  const abandon = new AbortController();
  const doors = new Doors(
    (door) => () => {
      tried.push(door);
      abandon.abort(new Error('the channel was closed'));
      return Promise.reject(new Error('abandoned'));
    },
    1000,
  );
  doors.update([{ weight: 1, ...a }]);
  await expect(doors.open('a:1')({} as LocalSide, abandon.signal)).rejects.toThrow('the channel was closed');
  expect(tried).toEqual(['a-unix']);
});

test.each<[unknown, RegExp]>([
  ['unix:/run/a.sock', /a:1: doors are a list of addresses/],
  [['nonsense'], /nonsense/],
  [[5], /not a string/],
  [Array.from({ length: 9 }, (_, i) => `a:${i + 1}`), /9 doors, at most 8 are allowed/],
])('doors %j are refused', (doors, text) => {
  expect(() => createChannel([{ address: 'a:1', doors: doors as string[] }])).toThrow(text);
});
