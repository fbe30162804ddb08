/**
 * Tests connections of sessions on the tcp fabric: only at the address that the user has given, through
 * devices in between, beside unauthenticated peers, and within limits.
 */
import { connect, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  type Channel,
  type ChannelOptions,
  createChannel,
  createClient,
  createServer,
  leaseOf,
  RpcError,
  type Server,
  type ServerOptions,
  stats,
} from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { connectMessageBytes, connectMessageMagic } from '../../runtime/control/socket/handoff.ts';
import { caught, until } from '../channel/bed.ts';
import { echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { ServerProcess } from '../runtime/process/processes.ts';
import { socketPath } from '../runtime/world.ts';
import { portOf, Relay } from './proxy.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function serve(
  options: ServerOptions = {},
  at = '127.0.0.1:0',
): Promise<{ server: Server; address: string }> {
  const server = createServer(options).add(EchoDefinition, echoHandlers({ started: 0, aborted: [] }));
  closing.push(() => server.shutdown({ graceMs: 0 }));
  return { server, address: await server.listen(at) };
}

/** Starts a server in another process. */
async function elsewhere(): Promise<string> {
  const { child, address } = await ServerProcess.start();
  closing.push(() => child.kill('SIGKILL'));
  return address;
}

function open(address: string, options: ChannelOptions = { fabric: 'tcp' }): Channel {
  const channel = createChannel(address, options);
  closing.push(() => channel.close());
  return channel;
}

async function echoes(channel: Channel, bytes = 100): Promise<boolean> {
  const payload = new Uint8Array(bytes).fill(7);
  const reply = await createClient(EchoDefinition, channel).echo({ payload });
  const right = Buffer.compare(reply.payload, payload) === 0;
  leaseOf(reply)?.release();
  return right;
}

function proxy(...given: ConstructorParameters<typeof Relay>): Relay {
  const made = new Relay(...given);
  closing.push(() => made.close());
  return made;
}

describe('the choice of the fabric', () => {
  test('prefers shared memory on one host', async () => {
    const lines: string[] = [];
    const channel = open((await serve()).address, { log: (line) => lines.push(line) });
    expect(await echoes(channel)).toBe(true);
    expect(channel.fabric).toBe('shm');
    expect(lines.join()).toMatch(/tcp: not needed, shm comes first/);
  });

  test.each<[string, ServerOptions, ChannelOptions]>([
    ['the server has nothing else', { fabric: 'tcp' }, {}],
    ['the client has nothing else', {}, { fabric: 'tcp' }],
    ['verbs, without a device, was the first', { fabric: ['verbs', 'tcp'] }, { fabric: ['verbs', 'tcp'] }],
  ])('tcp is the last choice: %s', async (_, serverOptions, channelOptions) => {
    const channel = open((await serve(serverOptions)).address, channelOptions);
    expect(await echoes(channel, 300_000)).toBe(true);
    expect(channel.session).toMatchObject({ fabric: 'tcp', device: 'tcp' });
  });

  test('never uses tcp for a server behind a unix socket, and the error contains this reason', async () => {
    const { address } = await serve({}, `unix:${socketPath()}`);
    const error = await caught(echoes(open(address)));
    expect(error.message).toMatch(/no fabric in common \(tcp: the address is no host:port\)/);
  });

  test('works with IPv6', async () => {
    const { address } = await serve({}, '[::1]:0');
    expect(await echoes(open(address), 100_000)).toBe(true);
  });

  test('works with link-local IPv6, where the address names the interface', async ({ skip }) => {
    const [zoned] = Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
      addresses
        .filter(({ address }) => address.startsWith('fe80:'))
        .map(({ address }) => `${address}%${name}`),
    );
    skip(zoned === undefined, 'no interface of this machine has a link-local address');
    const { address } = await serve({}, `[${zoned}]:0`);
    expect(await echoes(open(address), 100_000)).toBe(true);
  });
});

describe('devices in between', () => {
  test('may forward a single port, like a tunnel', async () => {
    const port = portOf((await serve()).address);
    const channel = open(await proxy(() => port).listen());
    expect(await echoes(channel, 1_000_000)).toBe(true);
  });

  test('may lead each new connection to another server, and the session still finds its own server', async () => {
    const ports = [portOf((await serve()).address), portOf(await elsewhere())];
    const between = proxy((index) => ports[index % 2]!);
    const channel = open(await between.listen());
    expect(await echoes(channel, 1_000_000)).toBe(true);
    expect(between.count).toBe(3);
  });

  test.each<[string, ChannelOptions, RegExp]>([
    ['the fabric', {}, /data: no fabric connects \(tcp: .+ has not answered within 4000 ms\)$/],
    [
      'the channel',
      { connectTimeoutMs: 2_000 },
      /no answer within 2000 ms \(option connectTimeoutMs of the channel\): .+ data \(tcp\)$/,
    ],
  ])(
    'a proxy that passes on the sideband connection alone: the error says so, in the time of %s',
    async (_, options, text) => {
      const port = portOf((await serve()).address);
      const between = proxy(
        () => port,
        ({ index, client, server }) => {
          if (index > 0) client.unpipe(server);
        },
      );
      const channel = open(await between.listen(), { fabric: 'tcp', ...options });
      const { message } = await caught(channel.ready());
      expect(message).toContain('the sideband connection was made, but none for data');
      expect(message).toMatch(text);
    },
  );

  test('may lead to no server that knows the session; the call then fails with that reason', async () => {
    const [right, wrong] = [portOf((await serve()).address), portOf(await elsewhere())];
    const channel = open(await proxy((index) => (index === 0 ? right : wrong)).listen());
    expect((await caught(echoes(channel))).message).toMatch(/does the address lead to many servers\?/);
  });

  test.each([
    ['the sideband', 0],
    ['the connection of the session', 1],
  ])(
    'that cuts %s at each byte of the handshake: the call settles, and another channel works',
    async (_, cut) => {
      const { server, address } = await serve();
      const port = portOf(address);
      for (const [side, last] of [
        ['client', cut === 0 ? 240 : connectMessageBytes],
        ['server', cut === 0 ? 240 : connectMessageBytes],
      ] as const) {
        for (let at = 1; at <= last; at += cut === 0 ? 7 : 1) {
          let bytes = 0;
          const between = proxy(
            () => port,
            (passage) => {
              if (passage.index !== cut) return;
              const from = passage[side];
              from.on('data', (chunk: Buffer) => {
                bytes += chunk.byteLength;
                if (bytes >= at) from.destroy();
              });
            },
          );
          const channel = open(await between.listen());
          const outcome = await echoes(channel).catch((error: unknown) => error);
          if (outcome !== true) expect(outcome).toBeInstanceOf(RpcError);
          await channel.close();
          between.close();
        }
      }
      expect(await echoes(open(address))).toBe(true);
      await until(() => server.sessionCount === 1);
    },
  );
});

describe('unauthenticated peers', () => {
  /** Opens a connection that begins with these bytes, and collects the answer until the server closes it. */
  function unknownPeer(address: string, bytes: Uint8Array): { socket: Socket; told: Promise<Buffer> } {
    const socket = connect(portOf(address), '127.0.0.1');
    closing.push(() => socket.destroy());
    socket.write(bytes);
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => undefined);
    return {
      socket,
      told: new Promise((resolve) => socket.on('close', () => resolve(Buffer.concat(chunks)))),
    };
  }
  function connectMessage(): Buffer {
    const bytes = Buffer.alloc(connectMessageBytes);
    bytes.writeUInt32LE(connectMessageMagic, 0);
    bytes.set([1, 1], 4);
    return bytes;
  }

  test('a peer that asks for an unknown session gets an error', async () => {
    const { address } = await serve();
    const told = await unknownPeer(address, connectMessage()).told;
    expect([told.byteLength, told.readUInt32LE(0), told[5]]).toEqual([
      connectMessageBytes,
      connectMessageMagic,
      3,
    ]);
  });

  test.each<[string, (bytes: Buffer) => void]>([
    ['another version', (bytes) => bytes.writeUInt8(9, 4)],
    ['an answer instead of a question', (bytes) => bytes.writeUInt8(2, 5)],
  ])('%s is closed without an answer', async (_, change) => {
    const { address } = await serve();
    const bytes = connectMessage();
    change(bytes);
    expect((await unknownPeer(address, bytes).told).byteLength).toBe(0);
  });

  test('a peer that sends half a connect message has the time of a handshake, and evicts no peer that sends frames', async () => {
    const { address } = await serve({ handshakesMax: 4, handshakeTimeoutMs: 300 });
    const half = Array.from({ length: 40 }, () => unknownPeer(address, connectMessage().subarray(0, 20)));
    expect(await echoes(open(address))).toBe(true);
    // (They are notified of a refusal.)
    for (const { told } of half) expect((await told).includes('handshake')).toBe(true);
  });
});

describe('limits of the server', () => {
  test.each<[string, ServerOptions]>([
    ['sessionsMax', { sessionsMax: 1 }],
    ['sessionsPerPeerMax', { sessionsPerPeerMax: 1 }],
  ])('the connection of a session is not counted as one more: %s', async (name, options) => {
    const { address } = await serve(options);
    expect(await echoes(open(address))).toBe(true);
    const error = await caught(echoes(open(address)));
    expect(error.message).toMatch(name);
  });
});

test('nothing is left when all connections are closed', async () => {
  const { address } = await serve();
  for (let i = 0; i < 20; ++i) {
    const channel = open(address);
    expect(await echoes(channel, 200_000)).toBe(true);
    await channel.close();
  }
  for (const close of closing.splice(0).reverse()) await close();
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  await until(() => {
    collect();
    return Object.values(stats('tcp')).every((value) => value === 0);
  });
});
