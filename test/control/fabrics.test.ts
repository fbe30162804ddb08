/**
 * Tests the choice of a fabric on the current machine: options and environment, warnings about the choice,
 * and contexts of one session.
 */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  allocBuffer,
  type Channel,
  type ChannelOptions,
  createChannel,
  createClient,
  createInProcessChannel,
  createServer,
  type FabricOptions,
  leaseOf,
  type Server,
  type ServerOptions,
  Status,
  stats,
} from 'rdma-rpc';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type FabricPlan, fabricPlan, fabricRules } from '../../runtime/control/fabric-options.ts';
import { whyNotReached } from '../../runtime/control/host.ts';
import { ownAddress } from '../../runtime/control/socket/address.ts';
import { whyNoDevice } from '../../runtime/control/verbs-devices.ts';
import { checkedOptions } from '../../runtime/core/options.ts';
import type { VerbsDevice, VerbsReport } from '../../runtime/native/native.ts';
import { turn, until } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

let server: Server | undefined;
const channels: Channel[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const channel of channels.splice(0)) await channel.close();
  await server?.shutdown({ graceMs: 0 });
  server = undefined;
});
async function pair(serverOptions: ServerOptions, channelOptions: ChannelOptions): Promise<Channel> {
  server = createServer(serverOptions).add(EchoDefinition, {
    echo: (request) => request,
    fetch: ({ number }) => ({ payload: new Uint8Array(number).fill(3) }),
  });
  const channel = createChannel(await server.listen('127.0.0.1:0'), channelOptions);
  channels.push(channel);
  return channel;
}

describe('the allowed fabrics', () => {
  const plan = (options: FabricOptions): FabricPlan =>
    fabricPlan(options, checkedOptions('test', options, fabricRules), undefined);

  test('are detected when none are configured', () => {
    expect(plan({})).toMatchObject({ names: ['shm', 'shm-fd', 'verbs', 'tcp'], auto: true, isolated: false });
  });

  test('are set by the environment unless an option sets them', () => {
    vi.stubEnv('RDMA_RPC_FABRIC', 'verbs,shm');
    vi.stubEnv('RDMA_RPC_DEVICE', 'mlx5_1');
    vi.stubEnv('RDMA_RPC_PORT', '2');
    vi.stubEnv('RDMA_RPC_GID_INDEX', '3');
    expect(plan({})).toMatchObject({
      names: ['verbs', 'shm'],
      auto: false,
      verbs: { device: 'mlx5_1', port: 2, gidIndex: 3 },
    });
    expect(plan({ fabric: 'shm', verbs: { device: 'mlx5_0', gidIndex: 0 } })).toMatchObject({
      names: ['shm'],
      verbs: { device: 'mlx5_0', port: 2, gidIndex: 0 },
    });
    expect(plan({ fabric: 'auto' }).auto).toBe(true);
  });

  test.each([
    [
      'RDMA_RPC_FABRIC',
      'infiniband',
      /environment variable RDMA_RPC_FABRIC: infiniband is not allowed; use 'auto', or one or more of shm, shm-fd, verbs/,
    ],
    ['RDMA_RPC_FABRIC', 'shm,shm', /RDMA_RPC_FABRIC: \["shm","shm"\] is not allowed; use/],
    ['RDMA_RPC_PORT', 'one', /RDMA_RPC_PORT: NaN is not an integer from 1 to 255/],
    ['RDMA_RPC_GID_INDEX', '256', /RDMA_RPC_GID_INDEX: 256 is not an integer from 0 to 255/],
    ['RDMA_RPC_DEVICE', 'x'.repeat(65), /RDMA_RPC_DEVICE: must be a string of at most 64 bytes/],
  ])('a bad %s (%s) is refused by name', (name, value, message) => {
    vi.stubEnv(name, value);
    expect(() => createServer()).toThrow(message);
    expect(() => createChannel('127.0.0.1:1')).toThrow(message);
  });

  test.each<[string, object, RegExp]>([
    [
      'no fabric',
      { fabric: 'sim' },
      /fabric: sim is not allowed; use 'auto', or one or more of shm, shm-fd, verbs/,
    ],
    ['an empty list', { fabric: [] }, /fabric: \[\] is not allowed; use/],
    ['auto in a list', { fabric: ['auto', 'shm'] }, /fabric: auto is not allowed/],
    [
      'an unknown option of verbs',
      { verbs: { dev: 'a' } },
      /verbs: there is no option dev; did you mean device\?/,
    ],
    ['verbs that is a name', { verbs: 'mlx5_0' }, /verbs: must be an object with options, but is mlx5_0/],
    ['a retry count', { verbs: { retryCount: 8 } }, /verbs: retryCount: 8 is not an integer from 0 to 7/],
    [
      'an isolation',
      { isolation: 'process' },
      /isolation: process is not allowed; use one of context, session/,
    ],
  ])('a bad option is refused by name: %s', (_, options, message) => {
    expect(() => createServer(options)).toThrow(message);
    expect(() => createChannel('127.0.0.1:1', options)).toThrow(message);
  });

  test('the in-process channel has one fabric with any environment', async () => {
    vi.stubEnv('RDMA_RPC_FABRIC', 'verbs');
    const options = { fabric: 'shm' } as object;
    expect(() => createInProcessChannel(() => undefined, options)).toThrow(/no option fabric/);
    const channel = createInProcessChannel((each) => each.add(EchoDefinition, { echo: (r) => r }));
    channels.push(channel);
    await channel.ready();
    expect(channel.fabric).toBe('sim');
  });
});

describe('the log about fabrics', () => {
  test('has one line on each side, with the reason against the other fabrics', async () => {
    const lines: string[] = [];
    const log = (line: string) => void lines.push(line);
    const channel = await pair({ log }, { log });
    await channel.ready();
    await until(() => lines.length === 2);
    for (const line of lines) expect(line).toMatch(/: fabric shm \(window\) chosen; verbs: .+/);
  });

  test('names a device that does not exist, on the side that lacks it', async () => {
    const verbs = { device: 'nobodys0' };
    server = createServer({ fabric: 'verbs', verbs });
    await expect(server.listen('127.0.0.1:0')).rejects.toThrow(/verbs is off: /);
    const channel = await pair({ fabric: ['verbs', 'shm'] }, { fabric: 'verbs', verbs });
    await expect(channel.ready()).rejects.toMatchObject({
      code: Status.UNAVAILABLE,
      message: /no fabric connects \(verbs: .+\)$/,
    });
  });

  test('names a fabric that the server does not offer', async () => {
    const channel = await pair({ fabric: 'shm' }, { fabric: 'verbs' });
    await expect(channel.ready()).rejects.toThrow(
      /no fabric in common \(verbs: the server does not offer it\)/,
    );
  });

  test('shows that the next fabric of a list is tried', async () => {
    const lines: string[] = [];
    const fabric = ['verbs', 'shm'] as const;
    const verbs = { device: 'nobodys0' };
    const channel = await pair({ fabric }, { fabric, verbs, log: (line) => lines.push(line) });
    await channel.ready();
    expect(channel.fabric).toBe('shm');
    expect(lines).toEqual([expect.stringMatching(/: fabric shm \(window\) chosen; verbs: .+/)]);
  });

  test.each([
    ['host', 'boot/pid:[1]', 'boot/pid:[1]', /^$/],
    ['host', 'boot/pid:[1]', 'boot/pid:[2]', /two pid namespaces of one host/],
    ['host', 'boot/pid:[1]', 'other/pid:[1]', /on two hosts/],
    ['kernel', 'boot/pid:[1]', 'boot/pid:[2]', /^$/],
    ['kernel', 'boot/pid:[1]', 'other/pid:[1]', /on two hosts/],
    ['network', 'boot/pid:[1]', 'other/pid:[1]', /^$/],
  ] as const)('about the reach of a %s from %s to %s', (reach, one, other, why) => {
    expect(whyNotReached(reach, one, other)).toMatch(why);
  });

  test('names devices', () => {
    const report = (...devices: [string, string][]): VerbsReport => ({
      whyNone: devices.length === 0 ? 'verbs is off: no RDMA device' : '',
      whyNoCm: '',
      memlock: '',
      devices: devices.map(([name, whyNot]) => ({ name, whyNot }) as VerbsDevice),
    });
    expect(whyNoDevice(report())).toMatch(/no RDMA device/);
    expect(whyNoDevice(report(['a', 'no active port'], ['b', '']))).toBe('');
    expect(whyNoDevice(report(['a', 'no active port'], ['b', '']), 'a')).toBe('a: no active port');
    expect(whyNoDevice(report(['a', '']), 'b')).toMatch(/no RDMA device b here, only a/);
  });

  test.each([
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['127.0.0.1', undefined],
    ['::1', undefined],
    [undefined, undefined],
  ])('the device is looked for by the address of the socket: %s is %s', (localAddress, address) => {
    expect(ownAddress({ localAddress } as never)).toBe(address);
  });
});

describe('a session with its own context', () => {
  const isolation = 'session';
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  /**
   * The server echoes views of its requests. The memory of the requests returns when the views are collected.
   */
  const nothingLeft = (): Promise<void> =>
    until(() => {
      collect();
      return Object.values(stats('shm')).every((value) => value === 0);
    });

  test.each([0, 100, 9000, 3_000_000])('makes calls of %i bytes', async (bytes) => {
    const channel = await pair({ isolation }, { isolation });
    const client = createClient(EchoDefinition, channel);
    const payload = new Uint8Array(bytes).fill(7);
    expect(Buffer.compare((await client.echo({ payload })).payload, payload)).toBe(0);
    const fetched = await client.fetch({ number: bytes });
    expect(Buffer.compare(fetched.payload, new Uint8Array(bytes).fill(3))).toBe(0);
  });

  test('shares nothing with other sessions: their leases cannot receive for it', async () => {
    const first = await pair({ isolation }, { isolation });
    const second = createChannel(first.address, { isolation });
    channels.push(second);
    await Promise.all([first.ready(), second.ready()]);
    const lease = allocBuffer(100_000, first);
    const client = createClient(EchoDefinition, second);
    await expect(client.fetch({ number: 50_000 }, { into: lease })).rejects.toThrow(/belongs to another/);
    // The bytes can be used like any other memory, and so can the bytes of a request.
    lease.bytes.fill(9);
    expect((await client.echo({ payload: lease.bytes })).payload.every((byte) => byte === 9)).toBe(true);
    lease.release();
  });

  test('has memory only while it is connected', async () => {
    const channel = await pair({ isolation }, { isolation });
    expect(() => allocBuffer(1000, channel)).toThrow(
      /isolation 'session' has memory only while it is connected/,
    );
    await channel.ready();
    allocBuffer(1000, channel).release();
  });

  test('frees everything, also after many connections', async () => {
    const channel = await pair({ isolation }, { isolation });
    for (let i = 0; i < 10; ++i) {
      const other = createChannel(channel.address, { isolation });
      const answer = await createClient(EchoDefinition, other).echo({ payload: new Uint8Array(100_000) });
      leaseOf(answer)?.release();
      await other.close();
    }
    await server!.shutdown();
    await nothingLeft();
  });

  test('may end before the bytes of its last message, which stay until they are released', async () => {
    const channel = await pair({ isolation }, { isolation });
    const answer = await createClient(EchoDefinition, channel).fetch({ number: 200_000 });
    await channel.close();
    await server!.shutdown();
    await turn();
    expect(answer.payload.every((byte) => byte === 3)).toBe(true);
    leaseOf(answer)?.release();
    await nothingLeft();
  });
});
