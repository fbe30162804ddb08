/**
 * Tests certificates that change while calls are made, revoked certificates, and sources of certificates that
 * fail.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ChannelTls, type ServerTls, Status, tlsFiles } from 'rdma-rpc';
import { describe, expect, test } from 'vitest';
import { caught, until } from '../outcomes.ts';
import { Authority, type Issued, pems } from './certificates.ts';
import { ends, reach } from './ends.ts';
import { authority, ca, mutual, serve, serverCert, spiffe, web } from './tls-bed.ts';

describe('certificates that change', () => {
  test('are used for the next connection; existing connections continue, and no call fails', async () => {
    let current: ServerTls = mutual;
    const { seen, address } = await serve({ tls: () => current });
    const old = reach(address, { tls: { ca, ...pems(web) } });
    await old.client.echo({});
    const next = new Authority('the next one');
    current = { ...pems(next.issue({ addresses: ['127.0.0.1'], subject: 'new' })), ca: next.ca };
    const mine = next.issue({ uris: ['spiffe://next/web'] });
    const fresh = reach(address, { tls: () => Promise.resolve({ ca: next.ca, ...pems(mine) }) });
    await fresh.client.echo({});
    await old.client.echo({});
    expect(seen.map(({ identity }) => identity)).toEqual([spiffe, 'spiffe://next/web', spiffe]);
    // The rotation has revoked this certificate.
    const late = await caught(reach(address, { tls: { ca: next.ca, ...pems(web) } }).client.echo({}));
    expect(late.code).toBe(Status.UNAUTHENTICATED);
  });

  test.each<[string, () => string, string]>([
    ['has expired', () => authority.oldList(), 'CRL_HAS_EXPIRED'],
    ['is of another authority', () => new Authority('another').revoke(), 'UNABLE_TO_GET_CRL'],
  ])("a list of the server that %s is the server's fault, and not the client's", async (_, list, code) => {
    const { lines, address } = await serve({ tls: { ...mutual, crl: list() } });
    const error = await caught(reach(address, { tls: { ca, ...pems(web) } }).client.echo({}));
    expect(error.code).toBe(Status.UNAUTHENTICATED);
    expect(error.message).toMatch(/this server cannot check certificates of clients$/);
    await until(() => lines.length > 0);
    expect(lines[0]).toMatch(
      `this server cannot check certificates of clients: its own option tls: crl is of no use: ${code}: `,
    );
  });

  test('are refused when a list revokes them, on either side, and others are accepted', async () => {
    const file = join(ends.folder, 'crl.pem');
    const [lost, kept] = [web, authority.issue({ uris: ['spiffe://example.org/kept'] })];
    const write = (...revoked: Issued[]): void => writeFileSync(file, authority.revoke(...revoked));
    write();
    const { seen, lines, address } = await serve({ tls: tlsFiles({ crl: file }, mutual) });
    const call = (who: Issued) => reach(address, { tls: { ca, ...pems(who) } }).client.echo({});
    await call(lost);
    write(lost);
    expect((await caught(call(lost))).code).toBe(Status.UNAUTHENTICATED);
    await call(kept);
    expect(seen.map(({ identity }) => identity)).toEqual([spiffe, 'spiffe://example.org/kept']);
    expect(lines.join()).toMatch(/CERT_REVOKED: it shows a certificate of "spiffe:\/\/example\.org\/web"/);
    const crl = authority.revoke(serverCert);
    const error = await caught(reach(address, { tls: { ca, crl, ...pems(kept) } }).client.echo({}));
    expect([error.code, error.message]).toEqual([
      Status.UNAUTHENTICATED,
      expect.stringMatching(/CERT_REVOKED/),
    ]);
  });

  test('are read again when their files have changed, but only when certificate and key match', async () => {
    const { folder } = ends;
    const paths = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
    const write = ({ cert, key }: Partial<Issued>): void => {
      if (cert !== undefined) writeFileSync(paths.cert, cert);
      if (key !== undefined) writeFileSync(paths.key, key);
    };
    const named = async (address: string): Promise<string | undefined> => {
      const { channel, client } = reach(address, { tls: { ca } });
      await client.echo({});
      return channel.session?.identity;
    };
    write(authority.issue({ addresses: ['127.0.0.1'], subject: 'one' }));
    const { address } = await serve({ tls: tlsFiles(paths) });
    expect(await named(address)).toBe('subject:CN=one');
    const two = authority.issue({ addresses: ['127.0.0.1'], subject: 'number two' });
    write({ cert: two.cert });
    expect(await named(address)).toBe('subject:CN=one');
    write({ key: two.key });
    expect(await named(address)).toBe('subject:CN=number two');
    rmSync(paths.key);
    expect(await named(address)).toBe('subject:CN=number two');
  });

  test.each<[string, () => ServerTls | Promise<ServerTls>, RegExp]>([
    [
      'throws',
      () => {
        throw new Error('no vault');
      },
      /tls: no vault/,
    ],
    ['rejects', () => Promise.reject(new Error('no vault')), /tls: no vault/],
    ['gives nonsense', () => ({ cert: 'x', key: 'y' }), /createServer: tls: /],
    ['hangs', () => new Promise(() => undefined), /no handshake within 2000 ms/],
  ])(
    'come from a function of the server that %s: that connection is lost, the next is not',
    async (how, bad, logged) => {
      let good = false;
      const tls = (): ServerTls | Promise<ServerTls> => (good ? mutual : bad());
      const { lines, address } = await serve({ tls, handshakeTimeoutMs: how === 'hangs' ? 2000 : 60_000 });
      const options = { tls: { ca, ...pems(web) } };
      const error = await caught(reach(address, options).client.echo({}));
      expect([error.processed, error.message]).toEqual([
        'no',
        expect.stringMatching(
          /the server ended the connection in the TLS handshake; the log of the server may say why$/,
        ),
      ]);
      await until(() => lines.length > 0);
      expect(lines[0]).toMatch(logged);
      expect(lines[0]).not.toMatch(/tls: .*tls: /);
      good = true;
      await reach(address, options).client.echo({}, { waitForReady: true });
    },
  );

  test.each<[string, () => ChannelTls | Promise<ChannelTls>, RegExp]>([
    [
      'throws',
      () => {
        throw new Error('no vault');
      },
      /tls: no vault/,
    ],
    ['hangs', () => new Promise(() => undefined), /no answer within 100 ms/],
  ])('come from a function of the channel that %s: its calls fail in time', async (how, tls, told) => {
    const { address } = await serve({ tls: mutual });
    const error = await caught(
      reach(address, { tls, connectTimeoutMs: how === 'hangs' ? 100 : 60_000 }).client.echo({}),
    );
    expect([error.processed, error.message]).toEqual(['no', expect.stringMatching(told)]);
  });
});
