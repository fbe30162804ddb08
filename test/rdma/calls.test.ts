/**
 * Tests calls between two RDMA devices, with every way in which a message can travel, and every way in which
 * a caller can cancel.
 */
import { allocBuffer, type FabricOptions, leaseOf, registerBuffer, Status, stats } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import {
  caught,
  clientDevice,
  endAll,
  over,
  pattern,
  type Reached,
  reach,
  same,
  serverDevice,
  sharedServer,
  until,
} from './pair.ts';

afterEach(endAll);
const server = sharedServer();

const open = (options: FabricOptions = {}): Reached => reach(server().address, over(clientDevice, options));

test('the session reports its fabric and device', async () => {
  const { channel, client } = open();
  await channel.ready();
  expect(channel.session).toMatchObject({ fabric: 'verbs', device: clientDevice, port: 1, callsInFlight: 0 });
  expect(['window', 'staging']).toContain(channel.session?.exposure);
  expect((await client.behave({ text: 'peer' })).text).toContain(`pid ${process.pid}`);
});

describe('messages', () => {
  test('of all sizes arrive complete, in both directions', async () => {
    const { client } = open();
    for (const bytes of [0, 1, 30, 100, 500, 4000, 8100, 8200, 16_400, 100_000, 1_000_000, 3_000_000]) {
      const payload = pattern(bytes, bytes);
      const answer = await client.echo({ payload, number: bytes });
      expect(answer.number).toBe(bytes);
      expect(same(answer.payload, payload)).toBe(true);
      leaseOf(answer)?.release();
      const fetched = await client.fetch({ number: bytes });
      expect(fetched.payload.byteLength).toBe(bytes);
      expect(fetched.payload.every((byte) => byte === (bytes & 0xff))).toBe(true);
      leaseOf(fetched)?.release();
    }
    expect(stats('verbs').protocolErrors).toBe(0);
  });

  test('each of many mixed calls gets its own response', async () => {
    const { client } = open();
    const sizes = [10, 3000, 20_000, 200_000];
    const calls = Array.from({ length: 200 }, async (_, i) => {
      const payload = pattern(sizes[i % 40 === 0 ? i % 4 : i % 2]!, i);
      const answer = await client.echo({ payload, number: i });
      expect(answer.number).toBe(i);
      expect(same(answer.payload, payload)).toBe(true);
      leaseOf(answer)?.release();
    });
    await Promise.all(calls);
  });

  test('are sent from a registered buffer, from a lease, and from shared memory of the host', async () => {
    const { client, channel } = open();
    await channel.ready();
    const own = pattern(300_000, 1);
    registerBuffer(own, channel);
    expect((await client.behave({ text: 'release', payload: own })).text).toBe('leased');
    const lease = allocBuffer(300_000, channel);
    lease.bytes.set(own);
    const foreign = allocBuffer(300_000);
    foreign.bytes.set(own);
    for (const each of [lease, foreign]) {
      const answer = await client.echo({ payload: each.bytes });
      expect(same(answer.payload, own)).toBe(true);
      leaseOf(answer)?.release();
      each.release();
    }
  });

  test('are sent from large buffers, which another thread registers, while small calls go on', async () => {
    const { client, channel } = open();
    await channel.ready();
    const before = stats('verbs').mrBackground;
    const bytes = 5_000_000;
    const [sum, fetched] = await Promise.all([
      client.behave({ text: 'release', payload: new Uint8Array(bytes).fill(1) }),
      client.fetch({ number: bytes }),
      client.echo({}),
    ]);
    expect(sum.number).toBe(bytes % 65_536);
    expect(fetched.payload.byteLength).toBe(bytes);
    leaseOf(fetched)?.release();
    // The staging memory was registered before, and the server's buffer belongs to another process.
    const own = channel.session?.exposure === 'window';
    expect(stats('verbs').mrBackground).toBe(before + (own ? 1 : 0));
  });

  test('are received into a lease', async () => {
    const { client, channel } = open();
    await channel.ready();
    const lease = allocBuffer(400_000, channel);
    const answer = await client.fetch({ number: 300_000 }, { into: lease });
    expect(leaseOf(answer)).toBe(lease);
    expect(answer.payload.every((byte) => byte === (300_000 & 0xff))).toBe(true);
    lease.release();
  });

  test('carry metadata in both directions', async () => {
    const { client } = open();
    let back: string | undefined;
    const metadata = { colour: 'blue' };
    const onTrailer = (trailer: { get(key: string): unknown }) => {
      back = String(trailer.get('colour'));
    };
    await client.behave({ text: 'metadata', payload: pattern(50_000, 1) }, { metadata, onTrailer });
    expect(back).toBe('blue');
  });
});

describe('errors of a handler', () => {
  test('keep their status code, even when the request was large', async () => {
    const { client } = open();
    for (const payload of [pattern(10, 1), pattern(100_000, 1)]) {
      const error = await caught(client.behave({ text: 'not found', payload }));
      expect(error).toMatchObject({ code: Status.NOT_FOUND, processed: 'yes' });
    }
  });
});

describe.each([0, 200_000])('a cancelled call with %i bytes', (bytes) => {
  const payload = pattern(bytes, 3);

  test('ends at its deadline or by its signal, notifies its handler, and leaves the session usable', async () => {
    const { client } = open();
    await client.echo({});
    const late = await caught(client.behave({ text: 'hang', payload }, { timeoutMs: 300 }));
    expect(late).toMatchObject({ code: Status.DEADLINE_EXCEEDED });
    const controller = new AbortController();
    const call = client.behave({ text: 'hang', payload }, { signal: controller.signal });
    await client.echo({});
    controller.abort();
    expect(await caught(call)).toMatchObject({ code: Status.CANCELLED });
    expect((await client.echo({ number: 5 })).number).toBe(5);
  });

  test('leaves no registration behind, and its buffer does not change any more', async () => {
    const { client } = open();
    await client.echo({});
    const mine = payload.slice();
    for (let i = 0; i < 10; ++i)
      await caught(client.behave({ text: 'hang', payload: mine }, { timeoutMs: 20 + i * 10 }));
    expect(same(mine, payload)).toBe(true);
    expect((await client.echo({ number: 6 })).number).toBe(6);
    expect(stats('verbs').protocolErrors).toBe(0);
  });
});

describe("isolation: 'session'", () => {
  test('each session has a context of its own, which ends with it', async () => {
    const options = over(clientDevice, { isolation: 'session' });
    // A context that other sessions have used lives until its last lease is gone, which may take until the
    // next garbage collection.
    const before = stats('verbs');
    const pairs = Array.from({ length: 3 }, () => reach(server().address, options));
    const payload = pattern(100_000, 2);
    for (const { client } of pairs) {
      const answer = await client.echo({ payload });
      expect(same(answer.payload, payload)).toBe(true);
      leaseOf(answer)?.release();
    }
    expect(stats('verbs').queuePairs).toBe(3);
    for (const { channel } of pairs) await channel.close();
    await until(
      () => stats('verbs'),
      ({ queuePairs, memoryRegions, openFds }) =>
        queuePairs === 0 && memoryRegions <= before.memoryRegions && openFds <= before.openFds,
    );
  });
});

test('client and server may use the same device', async () => {
  const { client } = reach(server().address, over(serverDevice));
  const answer = await client.echo({ payload: pattern(100_000, 1), number: 1 });
  expect(answer.number).toBe(1);
  leaseOf(answer)?.release();
});
