/** Tests that `onSession` reports the result of each connection once, for every kind of result. */
import { connect } from 'node:net';
import { connect as secureConnect } from 'node:tls';
import {
  type AcceptedSession,
  type ChannelOptions,
  createInProcessChannel,
  type RefusedSession,
  RpcError,
  type ServerOptions,
  Status,
} from 'rdma-rpc';
import { describe, expect, test, vi } from 'vitest';
import { caught, turn, until } from '../outcomes.ts';
import { Authority, pems } from './certificates.ts';
import { ends, reach, serve as served, unixAddress } from './ends.ts';

const authority = new Authority();
const { ca } = authority;
const serverCert = authority.issue({ addresses: ['127.0.0.1'] });
const web = authority.issue({ uris: ['spiffe://example.org/web'] });
const own = `uid:${process.geteuid!()}`;

async function serve(options: ServerOptions, address = unixAddress()) {
  const told: (AcceptedSession | RefusedSession)[] = [];
  const serving = await served({ onSession: (session) => told.push(session), ...options }, address);
  return { ...serving, told };
}

describe('a session that is accepted', () => {
  test('is reported with its identity, address, fabric and security', async () => {
    const { told, address } = await serve({});
    const { channel, client } = reach(address, { identity: 'web 1' });
    await client.echo({});
    await until(() => told.length > 0);
    await channel.close();
    await turn();
    expect(told).toEqual([
      {
        accepted: true,
        peer: expect.objectContaining({ identity: own, address, claims: 'web 1', pid: process.pid }),
        fabric: 'shm',
        security: 'bound',
      },
    ]);
  });

  test('may be identified by TLS, or have no identity', async () => {
    const { told, address } = await serve({ tls: { ...pems(serverCert), ca } }, '127.0.0.1:0');
    await reach(address, { tls: { ca, ...pems(web) }, fabric: 'tcp' }).client.echo({});
    const plain = await serve({}, '127.0.0.1:0');
    await reach(plain.address).client.echo({});
    await until(() => told.length + plain.told.length === 2);
    expect([told, plain.told]).toMatchObject([
      [{ accepted: true, fabric: 'tcp', security: 'bound', peer: { identity: 'spiffe://example.org/web' } }],
      [{ accepted: true, fabric: 'shm', security: 'none', peer: { identity: undefined } }],
    ]);
  });

  test.each(['none', 'sealed'] as const)(
    'promises what the server says of its sessions: %s',
    async (require) => {
      const { told, server, address } = await serve({ security: { require } });
      await reach(address).client.echo({});
      await until(() => told.length > 0 && server.sessions.length > 0);
      const [session] = server.sessions;
      expect(told).toMatchObject([{ accepted: true, security: session!.security }]);
      expect(session!.security).toBe(require === 'none' ? 'bound' : 'sealed');
    },
  );

  test('may be in the same process', async () => {
    const told: unknown[] = [];
    const channel = createInProcessChannel(() => undefined, { onSession: (session) => told.push(session) });
    ends.channels.push(channel);
    await channel.ready();
    await until(() => told.length > 0);
    expect(told).toMatchObject([{ accepted: true, security: 'bound', peer: { pid: process.pid } }]);
  });
});

describe('a refused connection is reported once, with the reason of the log', () => {
  const deny = () => {
    throw new RpcError(Status.PERMISSION_DENIED, 'not on Sundays');
  };
  test.each<[string, ServerOptions, ChannelOptions, Partial<RefusedSession>]>([
    [
      'by `allow`',
      { allow: { uid: 54_321 } },
      {},
      {
        code: Status.PERMISSION_DENIED,
        reason: expect.stringMatching(/option allow of the server\): uid \d+/),
      },
    ],
    [
      'by `authenticate`',
      { authenticate: deny },
      {},
      { code: Status.PERMISSION_DENIED, reason: 'not on Sundays' },
    ],
    [
      'by a fabric that it has not',
      { fabric: 'tcp' },
      { fabric: 'shm' },
      { reason: expect.stringContaining('no fabric in common') },
    ],
    [
      'by `authenticate` that hangs',
      { authenticate: () => new Promise(() => undefined), handshakeTimeoutMs: 50 },
      {},
      { code: Status.RESOURCE_EXHAUSTED, reason: expect.stringContaining('`authenticate` of the server') },
    ],
  ])('%s', async (_, options, theirs, refused) => {
    const { told, lines, address } = await serve(options);
    const { channel, client } = reach(address, { ...theirs, backoffMs: 600_000, backoffMaxMs: 600_000 });
    await caught(client.echo({}));
    await channel.close();
    await until(() => lines.length > 0);
    expect(told).toMatchObject([{ accepted: false, peer: { address, identity: own }, ...refused }]);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain((told[0] as RefusedSession).reason);
  });

  test('by `sessionsMax`, before any of its frames is read', async () => {
    const { told, address } = await serve({ sessionsMax: 1 });
    await reach(address).client.echo({});
    await caught(reach(address, { backoffMs: 600_000, backoffMaxMs: 600_000 }).client.echo({}));
    expect(told).toMatchObject([
      { accepted: true },
      {
        accepted: false,
        code: Status.RESOURCE_EXHAUSTED,
        reason: expect.stringContaining('sessionsMax'),
        peer: { address, identity: undefined },
      },
    ]);
  });

  test.each<[string, (port: number) => void, string | RegExp]>([
    ['one that goes at once', (port) => void connect(port, '127.0.0.1').end(), /closed the connection/],
    [
      'one that says nothing',
      (port) => void connect(port, '127.0.0.1').on('error', () => undefined),
      /within/,
    ],
    ['garbage', (port) => void connect(port, '127.0.0.1').end('GET / HTTP/1.1\r\n\r\n'), /requires TLS/],
    [
      'a name that is none',
      (port) => {
        const socket = connect(port, '127.0.0.1').on('error', () => undefined);
        socket.write(Buffer.from('16030100050100000100', 'hex'));
      },
      /TLS: .*client_hello:length too short/,
    ],
    [
      'older TLS',
      (port) =>
        void secureConnect({ host: '127.0.0.1', port, ca, maxVersion: 'TLSv1.2' }).on(
          'error',
          () => undefined,
        ),
      /TLS: .*unsupported protocol/i,
    ],
    [
      'TLS without a certificate',
      (port) => {
        const socket = secureConnect({ host: '127.0.0.1', port, ca }).on('error', () => undefined);
        socket.end();
      },
      /closed|reset/,
    ],
  ])('%s', async (_, come, reason) => {
    const { told, address } = await serve(
      { tls: { ...pems(serverCert), ca }, handshakeTimeoutMs: 300 },
      '127.0.0.1:0',
    );
    come(Number(address.split(':')[1]));
    await until(() => told.length > 0);
    await turn();
    expect(told).toMatchObject([
      {
        accepted: false,
        reason: expect.stringMatching(reason),
        peer: { address: expect.stringMatching(/^127\.0\.0\.1:\d+$/), identity: undefined },
      },
    ]);
  });

  test('of 500 that connect at once is reported for each, however few lines the log has', async () => {
    const { told, lines, address } = await serve(
      { handshakesMax: 8, sessionsPerPeerMax: 1000 },
      '127.0.0.1:0',
    );
    const port = Number(address.split(':')[1]);
    const sockets = Array.from({ length: 500 }, () =>
      connect(port, '127.0.0.1').on('error', () => undefined),
    );
    await until(() => told.length >= 492);
    for (const socket of sockets) socket.destroy();
    await until(() => told.length === 500);
    await turn();
    expect(new Set(told.map(({ peer }) => peer.address)).size).toBe(500);
    expect(lines.length).toBeLessThan(200);
  });
});

describe('a hook', () => {
  test.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('no disk');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no disk'))],
    ['hangs', () => new Promise(() => undefined)],
  ])('that %s harms no other', async (how, onSession) => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    try {
      const { address } = await serve({ onSession: onSession as never, sessionsMax: 1 });
      await reach(address).client.echo({ number: 1 });
      const error = await caught(reach(address).client.echo({}));
      expect(error.code).toBe(Status.RESOURCE_EXHAUSTED);
      await turn();
      const texts = warned.mock.calls.map(([text]) => String(text));
      if (how !== 'hangs') expect(texts).toContain('the function `onSession` has failed');
    } finally {
      warned.mockRestore();
    }
  });
});
