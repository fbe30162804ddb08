/**
 * Tests TLS on `host:port` addresses: the clients that get a session, those that do not, and the reports of
 * both sides.
 */
import { connect, createServer as listen } from 'node:net';
import { connect as secureConnect, TLSSocket } from 'node:tls';
import { type ChannelTls, type ServerTls, Status, stats } from 'rdma-rpc';
import { describe, expect, test, vi } from 'vitest';
import { connectMessageBytes, connectMessageMagic } from '../../runtime/control/socket/handoff.ts';
import { caught, until } from '../outcomes.ts';
import { Authority, type Issued, pems } from './certificates.ts';
import { reach } from './ends.ts';
import { authority, ca, mutual, serve, serverCert, spiffe, web } from './tls-bed.ts';

describe.each(['shm', 'tcp'] as const)('over %s', (fabric) => {
  test('both sides identify each other by their certificates', async () => {
    const { server, seen, address } = await serve({ tls: mutual, fabric });
    const { channel, client } = reach(address, { tls: { ca, ...pems(web) }, fabric, identity: 'liar' });
    const payload = new Uint8Array(1 << 20).fill(7);
    expect(Buffer.compare((await client.echo({ payload })).payload, payload)).toBe(0);
    expect(seen[0]).toMatchObject({ identity: spiffe, claims: 'liar', uid: undefined });
    expect(seen[0]?.certificate?.fingerprint256).toBe(web.certificate.fingerprint256);
    expect(channel.session).toMatchObject({ fabric, security: 'bound', identity: 'dns:localhost' });
    await until(() => server.sessions.length > 0);
    expect(server.sessions[0]).toMatchObject({ fabric, security: 'bound', identity: spiffe });
  });
});

test('Node is not asked for X509Certificates of connections, some of which it never frees, or for authorities', async () => {
  const parsed = vi.spyOn(TLSSocket.prototype, 'getPeerX509Certificate');
  const seen = vi.spyOn(TLSSocket.prototype, 'getPeerCertificate');
  try {
    const { address } = await serve({ tls: mutual });
    for (const named of [{}, { identity: 'dns:localhost' }])
      await reach(address, { tls: { ca, ...pems(web), ...named } }).client.echo({});
    expect(parsed).not.toHaveBeenCalled();
    expect(seen.mock.calls.length).toBeGreaterThan(0);
    expect(seen.mock.calls.flat()).toEqual([]);
  } finally {
    vi.restoreAllMocks();
  }
});

test('a certificate in place of names has the subject as its text has it', async () => {
  const named = authority.issue({ subject: 'a, O=b' });
  const { seen, address } = await serve({ tls: mutual });
  await reach(address, { tls: { ca, ...pems(named) } }).client.echo({});
  expect(seen[0]?.identity).toBe('subject:CN=a\\, O=b');
});

test('without `ca` the server is identified, and clients are not', async () => {
  const { server, seen, address } = await serve({ tls: pems(serverCert) });
  const { channel, client } = reach(address, { tls: { ca, ...pems(web) } });
  await client.echo({});
  expect(seen[0]).toMatchObject({ identity: undefined, certificate: undefined });
  await until(() => server.sessions.length > 0);
  expect([channel.session?.security, server.sessions[0]?.security]).toEqual(['bound', 'bound']);
});

test('`allow` and identities may be combined', async () => {
  const { address } = await serve({ tls: mutual, allow: { identity: [spiffe] } });
  await reach(address, { tls: { ca, ...pems(web) } }).client.echo({});
  const other = authority.issue({ uris: ['spiffe://example.org/other'] });
  const error = await caught(reach(address, { tls: { ca, ...pems(other) } }).client.echo({}));
  expect(error.code).toBe(Status.PERMISSION_DENIED);
});

describe('a client is refused, before a queue pair is created, that', () => {
  const otherAuthority = new Authority('another authority');
  test.each<[string, ChannelTls | undefined, RegExp, RegExp]>([
    [
      'has no certificate',
      { ca },
      /accepts only clients with a certificate that it trusts/,
      /no certificate/,
    ],
    [
      'has one of another authority',
      { ca, ...pems(otherAuthority.issue({ uris: [spiffe] })) },
      /accepts only clients with a certificate that it trusts/,
      /UNABLE_TO_VERIFY_LEAF_SIGNATURE/,
    ],
    [
      'has one that has expired',
      { ca, ...pems(authority.issue({ uris: [spiffe], days: -1 })) },
      /accepts only clients with a certificate that it trusts/,
      /CERT_HAS_EXPIRED/,
    ],
    ['speaks no TLS', undefined, /requires TLS on host:port addresses/, /requires TLS/],
  ])('%s', async (_, tls, told, logged) => {
    const { server, lines, address } = await serve({ tls: mutual });
    const { queuePairs } = stats();
    const error = await caught(reach(address, tls === undefined ? {} : { tls }).client.echo({}));
    expect([error.code, error.processed]).toEqual([Status.UNAUTHENTICATED, 'no']);
    expect(error.message).toMatch(told);
    expect(lines.join()).toMatch(logged);
    expect([server.sessionCount, stats().queuePairs]).toEqual([0, queuePairs]);
  });
});

describe('a client refuses a server, before it sends anything, that', () => {
  const otherAuthority = new Authority('another authority');
  test.each<[string, ServerTls | undefined, ChannelTls, RegExp]>([
    [
      'has a certificate of another authority',
      pems(serverCert),
      { ca: otherAuthority.ca },
      /UNABLE_TO_VERIFY_LEAF_SIGNATURE; option tls of the channel: ca must contain the authority of the server's certificate, and the server's option cert must contain the intermediate certificates/,
    ],
    [
      'has a certificate of another authority, and sends that too',
      { ...pems(serverCert), cert: serverCert.cert + ca },
      { ca: otherAuthority.ca },
      /SELF_SIGNED_CERT_IN_CHAIN; option tls of the channel: ca must contain the authority of the server's certificate\)/,
    ],
    [
      'has one that has expired',
      pems(authority.issue({ addresses: ['127.0.0.1'], days: -1 })),
      { ca },
      /CERT_HAS_EXPIRED; renew the certificate of the server, or that of its authority/,
    ],
    [
      'has another name',
      pems(serverCert),
      { ca, servername: 'db.example' },
      /_ALTNAME_INVALID; option tls of the channel: servername or identity must be a name in the certificate, such as identity: 'dns:localhost'\)$/,
    ],
    [
      'has a SPIFFE id, and the channel asks for its address',
      pems(authority.issue({ uris: ['spiffe://example.org/web'] })),
      { ca },
      /servername or identity must be a name in the certificate, such as identity: 'spiffe:\/\/example\.org\/web'\)$/,
    ],
    [
      'has several URIs, none of which is clearly its identity',
      pems(authority.issue({ uris: ['urn:a', 'urn:b'], addresses: ['127.0.0.1'] })),
      { ca, identity: 'urn:a' },
      /the server is without an unambiguous name \(its certificate has "URI:urn:a, URI:urn:b, IP Address:127\.0\.0\.1"\), which/,
    ],
    [
      'has the identity, which is asked for without its prefix',
      pems(serverCert),
      { ca, identity: 'localhost' },
      /is dns:localhost, which the option identity does not list; write 'dns:localhost' with the prefix dns: \(option tls of the channel: identity\)$/,
    ],
    [
      'has the identity, which is asked for with a prefix too many',
      pems(authority.issue({ uris: ['spiffe://example.org/web'], addresses: ['127.0.0.1'] })),
      { ca, identity: 'uri:spiffe://example.org/web' },
      /the option identity does not list; write 'spiffe:\/\/example.org\/web' without the prefix uri:/,
    ],
    [
      'is another identity',
      pems(authority.issue({ uris: ['spiffe://example.org/evil'], addresses: ['127.0.0.1'] })),
      { ca, identity: spiffe },
      /the server is spiffe:\/\/example\.org\/evil, which the option identity does not list \(option tls of the channel: identity\)$/,
    ],
    [
      'has the identity, but in other letters: identities are compared as they are written',
      pems(authority.issue({ uris: ['spiffe://example.org/Web'], addresses: ['127.0.0.1'] })),
      { ca, identity: ['spiffe://example.org/web', 'spiffe://EXAMPLE.org/Web'] },
      /the server is spiffe:\/\/example\.org\/Web, which the option identity does not list \(option tls of the channel: identity\)$/,
    ],
    [
      'has the identity, and more behind it',
      pems(authority.issue({ uris: ['spiffe://example.org/web/admin'], addresses: ['127.0.0.1'] })),
      { ca, identity: ['spiffe://example.org/web', 'spiffe://example.org/web/admin/'] },
      /the server is spiffe:\/\/example\.org\/web\/admin, which the option identity does not list/,
    ],
    [
      'the application does not want',
      pems(serverCert),
      {
        ca,
        checkServerIdentity: () => {
          throw new Error('never mind');
        },
      },
      /checkServerIdentity has failed: never mind/,
    ],
    [
      'the application does not want, as a text says',
      pems(serverCert),
      { ca, checkServerIdentity: (() => 'too old') as never },
      /is not accepted: too old \(option tls of the channel: checkServerIdentity\)$/,
    ],
    [
      'the application does not want, perhaps: it says so later',
      pems(serverCert),
      { ca, checkServerIdentity: (async () => undefined) as never },
      /checkServerIdentity must return undefined or an Error, and not a promise/,
    ],
    ['speaks no TLS', undefined, { ca }, /does not speak TLS at this address/],
  ])('%s', async (_, serverTls, tls, told) => {
    const { server, lines, address } = await serve(serverTls === undefined ? {} : { tls: serverTls });
    const { queuePairs } = stats();
    const error = await caught(reach(address, { tls }).client.echo({}));
    expect([error.code, error.processed]).toEqual([Status.UNAUTHENTICATED, 'no']);
    expect(error.message).toMatch(told);
    const why = serverTls === undefined ? /this server has no TLS at this address/ : /TLS/;
    await until(() => lines.some((line) => why.test(line)));
    expect([server.sessionCount, stats().queuePairs]).toEqual([0, queuePairs]);
  });

  test('may be identified by an identity instead of a name', async () => {
    const { address } = await serve({ tls: pems(web) });
    const { channel, client } = reach(address, { tls: { ca, identity: ['x', spiffe] } });
    await client.echo({});
    expect(channel.session?.identity).toBe(spiffe);
  });
});

describe('at a port with TLS', () => {
  test('refuses older TLS, and a peer that begins like it ends only its own connection', async () => {
    const { lines, port, address } = await serve({ tls: mutual });
    const old = secureConnect({ host: '127.0.0.1', port, ca, maxVersion: 'TLSv1.2' });
    await expect(new Promise((_, reject) => old.once('error', reject))).rejects.toThrow(/alert/);
    const garbage = connect(port, '127.0.0.1');
    garbage.on('error', () => undefined).resume();
    garbage.write(Buffer.from('1603010200ffffffffffff', 'hex'));
    garbage.end();
    await new Promise((resolve) => garbage.once('close', resolve));
    await until(() => lines.length === 2);
    expect(lines.join()).toMatch(/unsupported protocol/i);
    await reach(address, { tls: { ca, ...pems(web) } }).client.echo({});
  });

  test('a session is never resumed: each client shows its certificate', async () => {
    const { port } = await serve({ tls: mutual });
    let session: Buffer | undefined;
    for (let i = 0; i < 2; ++i) {
      const socket = secureConnect({
        host: '127.0.0.1',
        port,
        ca,
        ...pems(web),
        ...(session && { session }),
      });
      socket.on('session', (given) => {
        session = given;
      });
      await new Promise((resolve) => socket.once('secureConnect', resolve));
      expect(socket.isSessionReused()).toBe(false);
      await until(() => session !== undefined);
      socket.destroy();
    }
  });

  test('a connection that names no session is rejected', async () => {
    const { port } = await serve({ tls: mutual, fabric: 'tcp' });
    const connectMessage = Buffer.alloc(connectMessageBytes);
    connectMessage.writeUInt32LE(connectMessageMagic, 0);
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(connectMessage);
    let answer = 0;
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.byteLength;
    });
    await new Promise((resolve) => socket.once('close', resolve));
    expect(answer).toBe(0);
  });

  test('silence in the middle of the handshake has the usual time limit', async () => {
    const { server, lines, port } = await serve({ tls: mutual, handshakeTimeoutMs: 50 });
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined).resume();
    socket.write(Buffer.from('16030100f0', 'hex'));
    await new Promise((resolve) => socket.once('close', resolve));
    await until(() => lines.length > 0);
    expect(lines[0]).toMatch(/no handshake within 50 ms/);
    expect(server.sessionCount).toBe(0);
  });
});

test('another kind of server that closes the connection is not reported as an error of certificates', async () => {
  const other = listen((socket) => socket.destroy());
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address() as { port: number };
  const error = await caught(reach(`127.0.0.1:${port}`, { tls: { ca } }).client.echo({}));
  other.close();
  expect(error.code).toBe(Status.UNAVAILABLE);
});

test('channels with one source parse certificates once, as long as it returns the same ones', async () => {
  const { address } = await serve({ tls: mutual });
  let reads = 0;
  const read = (issued: Issued) => ({
    ca,
    key: issued.key,
    get cert() {
      ++reads;
      return issued.cert;
    },
  });
  let now = read(web);
  const source = () => now;
  for (let i = 0; i < 3; ++i) await reach(address, { tls: source }).client.echo({});
  const once = reads;
  now = read(web);
  for (let i = 0; i < 3; ++i) await reach(address, { tls: source }).client.echo({});
  expect([once > 0, reads]).toEqual([true, 2 * once]);
});
