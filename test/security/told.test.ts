/**
 * Tests the log lines for an operator about certificates that change and cannot be used, clients that are
 * refused, calls that are denied, and servers that no client can reach.
 */
import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import {
  type ChannelTls,
  createServer,
  type DeniedCall,
  type ServerOptions,
  type ServerTls,
  Status,
  statusName,
  tlsFiles,
} from 'rdma-rpc';
import { describe, expect, test, vi } from 'vitest';
import { quoted } from '../../runtime/core/log.ts';
import { caught, until } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Authority, type Issued, pems } from './certificates.ts';
import { ends, reach, serve, unixAddress } from './ends.ts';

const authority = new Authority();
const { ca } = authority;
const own = authority.issue({ addresses: ['127.0.0.1'] });
const web = authority.issue({ uris: ['spiffe://example.org/web'] });
const tcp = '127.0.0.1:0';
const psk = { fleet: randomBytes(32) };

describe('files of certificates that change and cannot be used', () => {
  const path = (name: string): string => join(ends.folder, name);
  const write = (texts: Record<string, string>): void => {
    for (const [name, text] of Object.entries(texts)) writeFileSync(path(name), text);
  };
  const filesOf = () => tlsFiles({ cert: path('cert'), key: path('key'), ca: path('ca') });

  test.each<[string, () => void, RegExp]>([
    ['no PEM', () => write({ cert: 'x' }), /: cert .+\/cert: .+PEM/],
    ['the key of another', () => write({ key: web.key }), /: key .+\/key: .+mismatch/i],
    ['no file', () => rmSync(path('key')), /: ENOENT: .+\/key'/],
  ])('the log says so once, and once when they can be used again: %s', async (_, spoil, why) => {
    write({ ...pems(own), ca });
    const { lines, address } = await serve({ tls: filesOf() }, tcp);
    const call = () => reach(address, { tls: { ca, ...pems(web) } }).client.echo({});
    const told = () => lines.filter((line) => line.startsWith('createServer: tls'));
    await call();
    spoil();
    await call();
    await call();
    expect(told()).toEqual([expect.stringMatching(why)]);
    expect(told()[0]).toMatch(/; new connections use the previous contents of the files$/);
    write(pems(authority.issue({ addresses: ['127.0.0.1'] })));
    await call();
    await call();
    expect(told()).toHaveLength(2);
    expect(told()[1]).toMatch(/the files can be used again: new connections use them$/);
  });

  test('are reported on a channel in the same way', async () => {
    write({ ...pems(web), ca });
    const { address } = await serve({ tls: { ...pems(own), ca } }, tcp);
    const lines: string[] = [];
    const tls = filesOf();
    const call = () => reach(address, { tls, log: (line) => lines.push(line) }).client.echo({});
    await call();
    write({ ca: 'x' });
    await call();
    await call();
    expect(lines.filter((line) => line.startsWith('createChannel: tls: ca '))).toHaveLength(1);
  });
});

describe('the log names the refused client', () => {
  const otherAuthority = new Authority();
  test.each<[string, ServerTls, ChannelTls, RegExp]>([
    [
      'the certificate of another authority',
      { ...pems(own), ca },
      { ca, ...pems(otherAuthority.issue({ subject: 'eve', names: ['eve.example'] })) },
      /it shows a certificate of "dns:eve\.example", issued by "CN=.*", serial number [0-9A-F]+$/,
    ],
    [
      'one that has expired',
      { ...pems(own), ca },
      { ca, ...pems(authority.issue({ uris: ['spiffe://example.org/old'], days: -1 })) },
      /CERT_HAS_EXPIRED: it shows a certificate of "spiffe:\/\/example\.org\/old"/,
    ],
    [
      'one that `checkClientIdentity` does not want',
      { ...pems(own), ca, checkClientIdentity: () => new Error('not on Sundays') },
      { ca, ...pems(web) },
      /not on Sundays: it shows a certificate of "spiffe:\/\/example\.org\/web"/,
    ],
    [
      'one that it does not want, without a word',
      { ...pems(own), ca, checkClientIdentity: () => new Error('') },
      { ca, ...pems(web) },
      /checkClientIdentity refuses it: it shows/,
    ],
    [
      'one of whom that function knows nothing',
      {
        ...pems(own),
        ca,
        checkClientIdentity: ({ subject }) => {
          throw new Error(`no list for ${String(subject)}`);
        },
      },
      { ca, ...pems(web) },
      /checkClientIdentity has failed: no list for undefined: it shows/,
    ],
    ['another key', { psk }, { psk: { fleet: randomBytes(32) } }, /: it has another key than "fleet"$/],
    ['a name that nobody has', { psk }, { psk: { boss: randomBytes(32) } }, /no psk by the name "boss"$/],
  ])('%s', async (_, tls, channelTls, says) => {
    const reasons: unknown[] = [];
    const onSession: ServerOptions['onSession'] = (session) => {
      if (!session.accepted) reasons.push(session.reason);
    };
    const { lines, address } = await serve({ tls, onSession }, tcp);
    const options = { tls: channelTls, backoffMs: 600_000, backoffMaxMs: 600_000 };
    expect((await caught(reach(address, options).client.echo({}))).code).toBe(Status.UNAUTHENTICATED);
    await until(() => lines.length > 0 && reasons.length > 0);
    expect(lines).toEqual([expect.stringMatching(says)]);
    expect(reasons).toEqual([expect.stringMatching(says)]);
  });

  test('by its certificate, whatever refuses it after TLS has identified it', async () => {
    const authenticate = () => Promise.reject(new Error('the list is empty'));
    const { lines, address } = await serve({ tls: { ...pems(own), ca }, authenticate }, tcp);
    await caught(reach(address, { tls: { ca, ...pems(web) }, backoffMs: 600_000 }).client.echo({}));
    await until(() => lines.length > 0);
    expect(lines[0]).toMatch(
      /^handshake with 127\.0\.0\.1:\d+ \(spiffe:\/\/example\.org\/web\) failed: .*: the list is empty$/,
    );
  });

  test('by a text without control characters', () => {
    expect(quoted('a"\n\u202eb\u00e9')).toBe('"a\\"\\n\\u202eb\\u00e9"');
    expect(quoted('x'.repeat(1000)).length).toBeLessThan(220);
  });
});

describe('the log says why a client refuses the server', () => {
  /** The first bytes of a client. */
  const setupWords = (): Promise<Buffer> =>
    new Promise((resolve) => {
      const wire = new Duplex({ read: () => undefined, write: (bytes: Buffer) => resolve(bytes) });
      connectTls({ socket: wire, minVersion: 'TLSv1.3' }).on('error', () => undefined);
    });
  const fatal = 2;

  test.each([
    [48, /: the client does not accept this server's certificate: its TLS alert is 'unknown ca'$/],
    [45, /: the client does not accept this server's certificate: its TLS alert is 'certificate expired'$/],
    [80, /: the client has ended the TLS handshake: its alert is 'internal error'$/],
  ])('by the name of its alert %i', async (alert, says) => {
    const { lines, address } = await serve({ tls: pems(own) }, tcp);
    const socket = connect(Number(address.split(':')[1]), '127.0.0.1');
    socket.on('error', () => undefined).write(await setupWords());
    // Alerts are not encrypted before the first encrypted message.
    socket.once('data', () => socket.write(Buffer.from([21, 3, 3, 0, 2, fatal, alert])));
    await until(() => lines.length > 0);
    socket.destroy();
    expect(lines).toEqual([expect.stringMatching(says)]);
    expect(lines[0]).toMatch(/^handshake with 127\.0\.0\.1:\d+ failed: TLS: /);
  });

  test('with the word perhaps when the client has sent no alert', async () => {
    const { lines, address } = await serve({ tls: pems(own) }, tcp);
    const options = { tls: { ca: new Authority().ca }, backoffMs: 600_000 };
    await caught(reach(address, options).client.echo({}));
    await until(() => lines.length > 0);
    expect(lines).toEqual([
      expect.stringMatching(/perhaps because the client does not accept this server's/),
    ]);
  });
});

describe('a call that `authorize` denies', () => {
  const told = async (authorize: ServerOptions['authorize']) => {
    const denied: DeniedCall[] = [];
    const { lines, address } = await serve(
      { authorize, onDenied: (call) => denied.push(call) },
      unixAddress(),
    );
    const { client } = reach(address);
    for (let i = 0; i < 2; ++i) {
      const { code } = await caught(client.echo({}));
      expect(statusName(code)).toBe('PERMISSION_DENIED');
    }
    return { denied, lines: lines.filter((line) => line.startsWith('authorize')) };
  };

  test.each<[string, ServerOptions['authorize']]>([
    ['by a table', { 'test.echo.Echo/*': 'uid:4711' }],
    ['by a function', () => false],
    ['by a promise', () => Promise.resolve(false)],
  ])('is reported to `onDenied` and to the log each time: %s', async (_, authorize) => {
    const { denied, lines } = await told(authorize);
    const identity = `uid:${process.geteuid!()}`;
    expect(denied).toMatchObject([
      { method: 'test.echo.Echo/Echo', peer: { identity } },
      { method: 'test.echo.Echo/Echo', peer: { identity } },
    ]);
    const line = `authorize has denied test.echo.Echo/Echo to ${identity} at unix:${ends.folder}/s`;
    expect(lines).toEqual([line, line]);
  });

  test('is reported to `onDenied` each time, to the log ten times a second', async () => {
    let denied = 0;
    const options = { authorize: () => false, onDenied: () => ++denied };
    const { lines, address } = await serve(options, unixAddress());
    const { client } = reach(address);
    await Promise.all(Array.from({ length: 200 }, () => caught(client.echo({}))));
    expect(denied).toBe(200);
    // The calls may have fallen into two or three different seconds.
    expect(lines.length).toBeLessThan(60);
  });

  test('is answered, whatever `onDenied` does', async () => {
    const onDenied = () => {
      throw new Error('the audit is full');
    };
    const { address } = await serve({ authorize: () => false, onDenied }, unixAddress());
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const { client } = reach(address);
    const errors = await Promise.all(Array.from({ length: 200 }, () => caught(client.echo({}))));
    expect(new Set(errors.map(({ code }) => code))).toEqual(new Set([Status.PERMISSION_DENIED]));
    // The calls may have fallen into two or three different seconds.
    expect(warned.mock.calls.length).toBeLessThan(60);
    warned.mockRestore();
  });
});

describe('a server that can accept no client reports it when it begins to listen', () => {
  const tls = { ...pems(own), ca };
  const server = pems(own);
  const old = authority.issue({ addresses: ['127.0.0.1'], days: -1 });
  const unix = 'unix';
  test.each<[string, string, ServerOptions, RegExp | undefined]>([
    [
      'sealed without TLS',
      tcp,
      { security: { require: 'sealed' } },
      /require is 'sealed', which needs the option tls/,
    ],
    ['bound without TLS', tcp, { security: { require: 'bound' } }, /require is 'bound'/],
    [
      'peer, and clients are not asked',
      tcp,
      { tls: server, security: { require: 'peer' } },
      /require is 'peer', but/,
    ],
    ['peer, and clients are asked', tcp, { tls, security: { require: 'peer' } }, undefined],
    ['sealed with TLS', tcp, { tls: server, security: { require: 'sealed' } }, undefined],
    ['sealed at a unix socket', unix, { security: { require: 'sealed' } }, undefined],
    [
      'identities without TLS',
      tcp,
      { allow: { identity: 'dns:web' } },
      /the option allow needs clients with an identity/,
    ],
    [
      'identities without a ca',
      tcp,
      { tls: server, allow: { identity: 'dns:web' } },
      /the option allow needs clients with an identity/,
    ],
    ['identities with a ca', tcp, { tls, allow: { identity: 'dns:web' } }, undefined],
    ['identities with psk', tcp, { tls: { psk }, allow: { identity: 'psk:fleet' } }, undefined],
    ['identities by authenticate', tcp, { authenticate: () => 'a', allow: { identity: 'a' } }, undefined],
    ['a function that may know', tcp, { tls: () => tls, allow: { identity: 'a' } }, undefined],
    ['users at a port', tcp, { tls, allow: { uid: 0 } }, /names only users and groups/],
    ['users at a unix socket', unix, { allow: { uid: 0 } }, undefined],
    ['a user as identity', unix, { allow: { identity: 'uid:0' } }, undefined],
    [
      'names at a unix socket',
      unix,
      { allow: { identity: 'dns:web' } },
      /names no uid, gid or identity 'uid:…'/,
    ],
    ['an empty list of users', unix, { allow: { uid: [] } }, /the option allow is empty/],
    [
      'empty lists of users and names',
      tcp,
      { tls, allow: { uid: [], identity: [] } },
      /the option allow is empty/,
    ],
    ['no method', tcp, { authorize: {} }, /the option authorize allows no calls/],
    [
      'nobody for any method',
      tcp,
      { authorize: { '*': [], 'test.echo.Echo/*': [] } },
      /authorize allows no calls/,
    ],
    ['an identity for one method', tcp, { authorize: { '*': [], 'test.echo.Echo/*': 'a' } }, undefined],
    ['its own certificate is of the past', tcp, { tls: pems(old) }, /cert of tls has expired on 20\S+Z$/],
    ['that, at a unix socket', unix, { tls: pems(old) }, undefined],
  ])('%s', async (_, where, options, says) => {
    const { lines } = await serve(options, where === unix ? unixAddress() : where);
    const expected = says === undefined ? [] : [expect.stringMatching(says)];
    expect(lines).toEqual(expected);
    for (const line of lines)
      expect(line).toMatch(/^listen \S+: no client can be accepted on this address: /);
  });

  test('because of its files, and again when they are replaced by expired ones', async () => {
    const files = { cert: join(ends.folder, 'cert'), key: join(ends.folder, 'key') };
    const write = (given: Issued): void => {
      for (const [name, path] of Object.entries(files)) writeFileSync(path, given[name as 'cert' | 'key']);
    };
    write(old);
    const { lines, address } = await serve({ tls: tlsFiles(files) }, tcp);
    expect(lines).toEqual([
      expect.stringMatching(/no client can be accepted on this address: the cert of tls has expired on/),
    ]);
    write(own);
    await reach(address, { tls: { ca } }).client.echo({});
    write(old);
    await caught(reach(address, { tls: { ca } }).client.echo({}));
    const told = lines.filter((line) => line.startsWith('createServer: tls'));
    expect(told).toEqual([
      expect.stringMatching(/: the cert has expired on 20\S+Z: clients do not accept it$/),
    ]);
  });

  test('as a process warning when there is no log', async () => {
    const warnings: Error[] = [];
    const listener = (warning: Error) => warnings.push(warning);
    process.on('warning', listener);
    const server = createServer({ allow: { identity: 'dns:web' } }).add(EchoDefinition, {});
    ends.servers.push(server);
    await server.listen(tcp);
    await until(() => warnings.length > 0);
    process.off('warning', listener);
    expect(warnings[0]!.message).toMatch(/no client can be accepted on this address/);
  });
});

test('at a unix socket the line about the fabric has the reason why tcp is not used', async () => {
  const { lines, address } = await serve({}, unixAddress());
  await reach(address).client.echo({});
  await until(() => lines.length > 0);
  expect(lines[0]).toMatch(/tcp: the client is connected by a unix socket, not by TCP/);
});
