/**
 * Tests a client and a server that identify themselves by a pre-shared key, by a certificate, or not at all:
 * each pair either connects, or the client's error says what both sides use and what to change.
 */
import { randomBytes } from 'node:crypto';
import { type ChannelTls, type ServerTls, Status } from 'rdma-rpc';
import { describe, expect, test } from 'vitest';
import { caught, until } from '../outcomes.ts';
import { Authority } from './certificates.ts';
import { reach, serve } from './ends.ts';

const psk = { fleet: randomBytes(32) };
const authority = new Authority();
const { cert, key } = authority.issue({ addresses: ['127.0.0.1'] });
const clients = { psk: { psk }, certificate: { ca: authority.ca }, nothing: undefined } as const;
const servers = { psk: { psk }, certificate: { cert, key }, nothing: undefined } as const;

type Kind = keyof typeof clients;

const table: readonly [client: Kind, server: Kind, says: RegExp][] = [
  [
    'psk',
    'certificate',
    /the server has a certificate, but this channel has a pre-shared key: give the server the same key in place of the certificate, or give the channel the authority of the certificate \(ca\)/,
  ],
  [
    'psk',
    'nothing',
    /the server does not speak TLS at this address, but this channel has a pre-shared key: give the server the same key in its option tls, or leave it out/,
  ],
  [
    'certificate',
    'psk',
    /it may have a pre-shared key while this channel expects a certificate: give the channel the same key \(option tls: psk\), or give the server a cert and a key/,
  ],
  [
    'certificate',
    'nothing',
    /the server does not speak TLS at this address: give the server the option tls, or leave it out of this channel/,
  ],
  [
    'nothing',
    'psk',
    /this server requires TLS on host:port addresses, with a pre-shared key: give the channel such a key \(option tls: psk of the channel\)/,
  ],
  [
    'nothing',
    'certificate',
    /this server requires TLS on host:port addresses: give the channel the option tls/,
  ],
];

function start(client: Kind, server: Kind) {
  const tlsOf = <Tls extends ChannelTls | ServerTls>(tls: Tls | undefined) =>
    tls === undefined ? {} : { tls };
  return {
    served: serve(tlsOf<ServerTls>(servers[server]), '127.0.0.1:0'),
    open: (address: string) =>
      reach(address, { ...tlsOf<ChannelTls>(clients[client]), backoffMs: 600_000, backoffMaxMs: 600_000 }),
  };
}

describe.each(table)('a client with %s and a server with %s', (client, server, says) => {
  test('do not connect, and the error names both', async () => {
    const { served, open } = start(client, server);
    const { server: running, address } = await served;
    const error = await caught(open(address).client.echo({}));
    expect(error).toMatchObject({ code: Status.UNAUTHENTICATED, processed: 'no' });
    expect(error.message).toMatch(says);
    expect(running.sessionCount).toBe(0);
  });
});

test.each(['psk', 'certificate', 'nothing'] as const)('two sides with %s connect', async (kind) => {
  const { served, open } = start(kind, kind);
  const { address } = await served;
  expect(await open(address).client.echo({ number: 7 })).toMatchObject({ number: 7 });
});

test('the log of a server with a pre-shared key says that the client has used none', async () => {
  const { served, open } = start('certificate', 'psk');
  const { address, lines } = await served;
  await caught(open(address).client.echo({}));
  await until(() => lines.length > 0);
  expect(lines.join()).toMatch(/the client has used no pre-shared key, but this server has nothing else/);
});
