/**
 * Tests many connections at once. Unauthenticated peers keep no client out, and certificates and servers
 * change under load without a failed call.
 */
import { connect, type Socket } from 'node:net';
import { createServer, type ServerTls, stats } from 'rdma-rpc';
import { expect, test } from 'vitest';
import { until } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Authority, pems } from './certificates.ts';
import { ends, reach, serve } from './ends.ts';

const authority = new Authority();
const serverCert = authority.issue({ addresses: ['127.0.0.1'] });
const spiffe = 'spiffe://example.org/web';
const mutual: ServerTls = { ...pems(serverCert), ca: authority.ca };
const channelTls = () => ({ ca: authority.ca, ...pems(authority.issue({ uris: [spiffe] })) });

test('with 10,000 unauthenticated connections, known clients are served and can reconnect', async () => {
  const { server, seen, address } = await serve({ tls: mutual, sessionsPerPeerMax: 65_536 }, '127.0.0.1:0');
  const port = Number(address.split(':')[1]);
  const known = reach(address, { tls: channelTls() });
  await known.client.echo({});
  const { queuePairs } = stats();
  // Some peers send nothing, some begin TLS and stop, some send HTTP, and some send garbage.
  const words = [
    Buffer.alloc(0),
    Buffer.from('16030100f0', 'hex'),
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    Buffer.alloc(64, 0xff),
  ];
  const open = new Set<Socket>();
  let gone = 0;
  for (let i = 0; i < 10_000; ++i) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined).resume();
    open.add(socket);
    socket.once('close', () => {
      ++gone;
      open.delete(socket);
    });
    const word = words[i % words.length]!;
    if (word.byteLength > 0) socket.write(word);
    if (i % 100 === 99) await known.client.echo({ number: i });
    // The system limits descriptors, so the server closes the oldest connection.
    await until(() => open.size < 400);
    if (i % 2500 === 1250) await reach(address, { tls: channelTls() }).client.echo({ number: i });
  }
  for (const socket of open) socket.destroy();
  await until(() => gone === 10_000);
  expect(seen.every(({ identity }) => identity === spiffe)).toBe(true);
  expect(seen).toHaveLength(1 + 100 + 4);
  await until(() => server.sessionCount === 5);
  expect(stats().queuePairs - queuePairs).toBeLessThanOrEqual(8);
});

test('no call fails during 20 rotations of all certificates under load, with a new client after each', async () => {
  let current = { authority, set: mutual };
  const { seen, address } = await serve({ tls: () => current.set }, '127.0.0.1:0');
  const clientTls = () => {
    const { authority: issuer } = current;
    return { ca: issuer.ca, ...pems(issuer.issue({ uris: [spiffe] })) };
  };
  let done = false;
  let calls = 0;
  const load = async (client: { echo(request: object): Promise<unknown> }): Promise<void> => {
    for (; !done; ++calls) await client.echo({ number: calls });
  };
  const loads: Promise<void>[] = [];
  const add = async (): Promise<void> => {
    const { channel, client } = reach(address, { tls: clientTls() });
    // A channel that has not connected yet would know only the earlier authority.
    await channel.ready();
    loads.push(load(client));
  };
  await add();
  for (let round = 1; round <= 20; ++round) {
    const next = new Authority(`authority ${round}`);
    current = { authority: next, set: { ...pems(next.issue({ addresses: ['127.0.0.1'] })), ca: next.ca } };
    await add();
    const before = calls;
    await until(() => calls >= before + 20);
  }
  done = true;
  await Promise.all(loads);
  expect(seen.every(({ identity }) => identity === spiffe)).toBe(true);
});

test('no call fails during 100 restarts of the server under load, with mutual TLS', async () => {
  const serving = async (address: string) => {
    const server = createServer({ tls: mutual, log: () => undefined });
    server.add(EchoDefinition, { echo: async (request) => request });
    ends.servers.push(server);
    return { server, address: await server.listen(address) };
  };
  let { server, address } = await serving('127.0.0.1:0');
  const { client } = reach(address, { tls: channelTls(), backoffMs: 1, backoffMaxMs: 10 });
  let done = false;
  let calls = 0;
  const load = async (): Promise<void> => {
    for (; !done; ++calls) {
      const number = calls & 0xffff;
      expect((await client.echo({ number }, { waitForReady: true })).number).toBe(number);
    }
  };
  const loads = Array.from({ length: 8 }, load);
  for (let restart = 0; restart < 100; ++restart) {
    const before = calls;
    await until(() => calls >= before + 8);
    await server.shutdown();
    ({ server } = await serving(address));
  }
  done = true;
  await Promise.all(loads);
  expect(calls).toBeGreaterThan(800);
});
