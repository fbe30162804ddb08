/**
 * Tests `sealed`: other parties cannot read or change the traffic between the queue pairs, on any fabric. A
 * side that requires it gets a sealed session, or no session.
 */
import { connect, createServer as listen, type Socket } from 'node:net';
import {
  allocBuffer,
  createClient,
  createInProcessChannel,
  createServer,
  type ServerOptions,
  Status,
} from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { commonCipher } from '../../runtime/control/handshake/binding.ts';
import { connectMessageBytes, connectMessageMagic } from '../../runtime/control/socket/handoff.ts';
import { loadNative } from '../../runtime/native/native.ts';
import { caught, until } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Authority, pems } from './certificates.ts';
import { ends, reach, serve, unixAddress } from './ends.ts';

const authority = new Authority();
const { ca } = authority;
const serverCert = pems(authority.issue({ names: ['localhost'], addresses: ['127.0.0.1'] }));
const security = { require: 'sealed' } as const;
const tcp = '127.0.0.1:0';

/**
 * These sizes cover all tiers: inline in the frame, in a slot, and by READ and WRITE, with one chunk of a
 * seal and with several.
 */
const sizes = [0, 1, 40, 5_000, 8_192, 9_000, 65_536, 65_537, 1 << 20, (8 << 20) + 13];

describe.each<[string, ServerOptions, () => string]>([
  ['shm by TLS', { fabric: 'shm', tls: serverCert }, () => tcp],
  ['tcp by TLS', { fabric: 'tcp', tls: serverCert }, () => tcp],
  ['shm by a unix socket', { fabric: 'shm' }, unixAddress],
  ['shm-fd by a unix socket', { fabric: 'shm-fd' }, unixAddress],
])('over %s', (_, { fabric, ...options }, at) => {
  test('messages of every size arrive', async () => {
    const { server, address } = await serve({ ...options, fabric, security }, at());
    const { channel, client } = reach(address, { fabric, ...(options.tls && { tls: { ca } }) });
    for (const bytes of sizes) {
      const payload = Buffer.alloc(bytes, 'never in the clear ');
      expect(Buffer.compare((await client.echo({ payload })).payload, payload)).toBe(0);
    }
    const many = await Promise.all(
      Array.from({ length: 500 }, (_, i) => client.echo({ payload: Buffer.alloc(i * 40, i) })),
    );
    for (const [i, { payload }] of many.entries())
      expect(Buffer.compare(payload, Buffer.alloc(i * 40, i))).toBe(0);
    await until(() => server.sessions.length > 0);
    const into = allocBuffer(9 << 20, channel);
    const payload = Buffer.alloc(9 << 20, 3);
    expect(Buffer.compare((await client.echo({ payload }, { into })).payload, payload)).toBe(0);
    expect([channel.session?.security, server.sessions[0]?.security]).toEqual(['sealed', 'sealed']);
  });
});

test('sessions within a process are sealed, too', async () => {
  const channel = createInProcessChannel(
    (server) => server.add(EchoDefinition, { echo: (request) => request }),
    { security },
  );
  ends.channels.push(channel);
  const client = createClient(EchoDefinition, channel);
  for (const bytes of sizes) {
    const payload = Buffer.alloc(bytes, 7);
    expect(Buffer.compare((await client.echo({ payload })).payload, payload)).toBe(0);
  }
  expect(channel.session?.security).toBe('sealed');
});

describe('an attacker on the path, where calls use tcp', () => {
  const closers: (() => void)[] = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });

  type From = 'client' | 'server';
  /**
   * Sees all bytes that pass, and may change bytes between the queue pairs. `at` is the number of bytes of
   * that side that have passed before.
   */
  async function onTheWay(
    to: string,
    change: (from: From, chunk: Buffer, at: number) => void = () => undefined,
  ) {
    const seen: Buffer[] = [];
    const sockets: Socket[] = [];
    const relay = listen((near) => {
      const far = connect(Number(to.split(':')[1]), '127.0.0.1');
      sockets.push(near, far);
      for (const socket of [near, far]) socket.on('error', () => undefined);
      let isData: boolean | undefined;
      const pass = (from: From, to: Socket) => {
        let sent = 0;
        return (chunk: Buffer): void => {
          isData ??= chunk.readUInt32LE(0) === connectMessageMagic;
          seen.push(Buffer.from(chunk));
          if (isData) change(from, chunk, sent);
          sent += chunk.byteLength;
          to.write(chunk);
        };
      };
      near.on('data', pass('client', far));
      far.on('data', pass('server', near));
      near.on('close', () => far.destroy());
      far.on('close', () => near.destroy());
    });
    closers.push(() => {
      for (const socket of sockets) socket.destroy();
      relay.close();
    });
    await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
    return { seen, address: `127.0.0.1:${(relay.address() as { port: number }).port}` };
  }

  const marker = 'never in the clear ';
  test.each(['bound', 'sealed'] as const)('reads what is %s, or not', async (level) => {
    const { address } = await serve({ tls: serverCert, fabric: 'tcp', security: { require: level } }, tcp);
    const between = await onTheWay(address);
    const { client } = reach(between.address, { tls: { ca }, fabric: 'tcp' });
    for (const bytes of [100, 5_000, 1 << 20]) await client.echo({ payload: Buffer.alloc(bytes, marker) });
    const found = Buffer.concat(between.seen).includes(marker);
    expect(found).toBe(level === 'bound');
  });

  test.each([
    ['a request', 'client', 100, 0],
    ['a large request', 'client', 1 << 20, 0],
    ['an answer', 'server', 100, 1],
    ['a large answer', 'server', 1 << 20, 1],
  ] as const)(
    'changes one bit of %s: that session ends, and the bytes are not delivered',
    async (_, side, bytes, handled) => {
      const { server, seen, address } = await serve({ tls: serverCert, fabric: 'tcp', security }, tcp);
      // The connect message is followed by a header of 32 bytes. The first long chunk contains the data of
      // READs and WRITEs.
      const wanted = bytes > 65_536 ? 60_000 : connectMessageBytes + 32 + 20;
      let flipped = 0;
      const between = await onTheWay(address, (from, chunk, at) => {
        const place = wanted - at;
        if (from !== side || flipped > 0 || place < 0 || place >= chunk.byteLength) return;
        chunk[place]! ^= 4;
        ++flipped;
      });
      const { channel, client } = reach(between.address, { tls: { ca }, fabric: 'tcp' });
      // Before the end of its handshake the server would report that it has run nothing, and the call would
      // be repeated.
      await channel.ready();
      await until(() => server.sessions.length === 1);
      const error = await caught(client.echo({ payload: Buffer.alloc(bytes, marker) }));
      expect(error.code).toBe(Status.UNAVAILABLE);
      expect([flipped, seen.length]).toEqual([1, handled]);
      // The next session is a new one.
      await client.echo({ payload: Buffer.alloc(bytes, marker) });
      expect(seen.length).toBe(handled + 1);
    },
  );
});

test('a client that requires sealing gets it from a server that does not require it', async () => {
  const { server, address } = await serve({ tls: serverCert, fabric: 'tcp' }, tcp);
  const { channel, client } = reach(address, { tls: { ca }, fabric: 'tcp', security });
  await client.echo({});
  await until(() => server.sessions.length > 0);
  expect([channel.session?.security, server.sessions[0]?.security]).toEqual(['sealed', 'sealed']);
});

test('without being requested, sessions are bound', async () => {
  const { address } = await serve({ tls: serverCert, fabric: 'tcp' }, tcp);
  const { channel, client } = reach(address, { tls: { ca }, fabric: 'tcp' });
  await client.echo({});
  expect(channel.session?.security).toBe('bound');
});

test.each([
  ['the server', { security }, {}],
  ['the client', {}, { security }],
])('without TLS %s that requires it refuses', async (who, ofServer, ofChannel) => {
  const { server, address } = await serve({ fabric: 'tcp', ...ofServer }, tcp);
  const error = await caught(reach(address, { fabric: 'tcp', ...ofChannel }).client.echo({}));
  expect(error.code).toBe(Status.FAILED_PRECONDITION);
  expect(error.message).toContain(`${who} requires 'sealed'`);
  expect(server.sessionCount).toBe(0);
});

test('the cipher is the one that is fast on both sides, otherwise the one that is fast everywhere', () => {
  const aes = 'aes-256-gcm';
  const chacha = 'chacha20-poly1305';
  expect(loadNative().ciphers.toSorted()).toEqual([aes, chacha]);
  expect(commonCipher([aes, chacha], [aes, chacha])).toBe(aes);
  expect(commonCipher([aes, chacha], [chacha, aes])).toBe(chacha);
  expect(commonCipher([aes, chacha], [aes])).toBe(aes);
  expect(commonCipher([chacha, aes], [aes])).toBe(aes);
  expect(commonCipher([aes, chacha], [])).toBeUndefined();
  expect(commonCipher([], [])).toBeUndefined();
});

test('invalid options are refused', () => {
  const require = 'secret' as 'sealed';
  expect(() => createServer({ security: { require } })).toThrow(
    /secret is not allowed; use one of none, peer, bound, sealed/,
  );
});
