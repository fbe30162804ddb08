/**
 * Tests unauthenticated peers of a server. Silent peers never evict a peer that sends frames, and a refusal
 * contains no information about the server.
 */
import { readFileSync } from 'node:fs';
import { duplexPair } from 'node:stream';
import type { ServerOptions } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { ownFeatures } from '../../runtime/control/frames.ts';
import { ClientHandshake, type Connection } from '../../runtime/control/handshake/client-handshake.ts';
import { discardSession, prepareSession } from '../../runtime/control/handshake/session-setup.ts';
import { hostIdentity } from '../../runtime/control/host.ts';
import { encodeFrame, Link } from '../../runtime/control/link.ts';
import { RpcServer } from '../../runtime/server/server.ts';
import { until } from '../outcomes.ts';
import { hello, limits, linkTo, side } from './by-hand.ts';

let server: RpcServer | undefined;
afterEach(async () => {
  await server?.shutdown({ graceMs: 0 });
  server = undefined;
});

/** Starts a server on the simulated fabric, and returns a function that connects a client by hand. */
function open(options: ServerOptions = {}): () => Link {
  server = new RpcServer(options, ['sim']);
  const of = server;
  return () => linkTo(of);
}

/** Connects clients that have sent hello, one after another, and have received the answer. */
async function welcomed(dial: () => Link, count: number): Promise<Link[]> {
  const links: Link[] = [];
  while (links.length < count) {
    const link = dial();
    link.send(hello());
    expect(await link.receive()).toMatchObject({ type: 'welcome' });
    links.push(link);
  }
  return links;
}

describe('a client that', () => {
  test('is in the middle of its handshake keeps its place, however many silent clients come', async () => {
    const dial = open({ handshakesMax: 16 });
    const link = dial();
    link.send(hello());
    await link.receive();
    const silent = Array.from({ length: 1000 }, dial);
    await until(() => silent.filter(({ ended }) => ended !== undefined).length >= 984);
    const own = prepareSession(side, 'sim', limits, limits, ownFeatures, { protection: 'none' });
    link.send({
      type: 'attach',
      fabric: 'sim',
      address: own.context.native.sessionAddress(own.target.session),
    });
    expect(await link.receive()).toMatchObject({ type: 'attached' });
    discardSession(own, 'done');
  });

  test('arrives with many others evicts no peer that has sent a frame', async () => {
    const dial = open({ handshakesMax: 4 });
    const spoken = await welcomed(dial, 4);
    // The number of connections that tcp clients open for their data.
    const second = Array.from({ length: 4 }, dial);
    // One more connection evicts the oldest of these connections. The others are still open.
    dial();
    await until(() => second[0]!.ended !== undefined);
    expect([...spoken, ...second.slice(1)].filter(({ ended }) => ended !== undefined)).toEqual([]);
  });

  test('names descriptors of the server learns nothing about them, but the log does', async () => {
    const lines: string[] = [];
    server = new RpcServer({ log: (line) => lines.push(line) }, ['shm']);
    const stat = readFileSync('/proc/self/stat', 'utf8');
    const ticks = BigInt(stat.slice(stat.lastIndexOf(')')).split(' ')[20]!);
    const told = new Set<string>();
    for (let fd = 0; fd < 24; fd++) {
      // The layout is that of native/fabric/shm/layout.h.
      const address = Buffer.alloc(88);
      for (const [i, word] of [0x6d687372, 1, process.pid, 7].entries()) address.writeUInt32LE(word, 4 * i);
      address.writeBigUInt64LE(ticks, 16);
      for (const [i, word] of [fd, fd, fd, 0, 32].entries()) address.writeUInt32LE(word, 64 + 4 * i);
      const [near, far] = duplexPair();
      server.accept(far, `script ${fd}`);
      const link = new Link(near);
      link.send(hello({ fabrics: [{ name: 'shm', host: hostIdentity() }] }));
      await link.receive();
      link.send({ type: 'attach', fabric: 'shm', address });
      const answers = [await link.receive(), await link.receive()];
      told.add(JSON.stringify(answers));
    }
    expect([...told]).toEqual([expect.stringMatching(/cannot open memory of this process/)]);
    expect(new Set(lines.map((line) => line.replace(/\d+/g, ''))).size).toBeGreaterThan(1);
  });

  test('sends pings and reads no answer cannot make the answers accumulate', async () => {
    server = new RpcServer({}, ['sim']);
    const [near, far] = duplexPair();
    server.accept(far, 'script');
    const link = new Link(near);
    link.send(hello());
    await link.receive();
    const own = prepareSession(side, 'sim', limits, limits, ownFeatures, { protection: 'none' });
    const address = own.context.native.sessionAddress(own.target.session);
    link.send({ type: 'attach', fabric: 'sim', address });
    expect(await link.receive()).toMatchObject({ type: 'attached' });
    link.send({ type: 'ready' });
    // These bytes are sent together with `ready`.
    link.send({ type: 'ping' });
    expect(await link.receive()).toEqual({ type: 'pong' });
    near.pause();
    const pings = 100_000;
    let most = 0;
    for (let i = 0; i < pings; i += 1000) {
      near.write(Buffer.concat(Array.from({ length: 1000 }, () => encodeFrame({ type: 'ping' }))));
      await new Promise((resolve) => setImmediate(resolve));
      most = Math.max(most, far.writableLength);
    }
    await until(() => near.writableLength === 0);
    expect(most).toBeLessThanOrEqual(far.writableHighWaterMark + encodeFrame({ type: 'pong' }).byteLength);
    discardSession(own, 'done');
  });

  test('has sent a frame and then stops is evicted for others, but stays while there are few', async () => {
    const dial = open({ handshakesMax: 4 });
    const links = await welcomed(dial, 8);
    expect(links.filter(({ ended }) => ended !== undefined)).toEqual([]);
  });

  test('attaches and then stops keeps no client out: neither by sessions nor by handshakes', async () => {
    const dial = open({ handshakesMax: 2, sessionsMax: 2 });
    const own = [1, 2, 3].map(() =>
      prepareSession(side, 'sim', limits, limits, ownFeatures, { protection: 'none' }),
    );
    const links = await welcomed(dial, 3);
    for (const [i, link] of links.entries()) {
      const address = own[i]!.context.native.sessionAddress(own[i]!.target.session);
      link.send({ type: 'attach', fabric: 'sim', address });
      const answer = await link.receive();
      // There is no room until one of the other peers has been silent for a moment.
      if (i < 2) expect(answer).toMatchObject({ type: 'attached' });
      else expect(answer).toMatchObject({ type: 'refusal', message: /sessionsMax/ });
    }
    let connection: Connection | undefined;
    while (connection === undefined)
      connection = await new ClientHandshake(dial(), side, 'a server').run().catch(() => undefined);
    expect(links[0]!.ended ?? links[1]!.ended).toBeDefined();
    discardSession(connection, 'done');
    for (const each of own) discardSession(each, 'done');
  });
});
