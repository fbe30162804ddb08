/**
 * Tests a response that must be copied while the arena is full. The response waits, as requests do. Other
 * calls continue, and the error names the resource for which the response waited.
 */
import { rmSync } from 'node:fs';
import {
  allocBuffer,
  type Channel,
  configure,
  createChannel,
  createClient,
  createServer,
  type Lease,
  RpcError,
  Status,
  stats,
} from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { socketPath } from '../runtime/world.ts';

const KiB = 1024;
configure({ arenaBytes: 8 * 1024 * KiB });

/** Matches the text for the caller: the missing resource, its holders, and the remedies. */
const names = /no memory for the response.*leases.*leaseOf\(message\)\?\.release\(\).*arenaBytes/s;

let channel: Channel;
let close: () => Promise<void>;
let leases: Lease[] = [];
let ran = 0;
/** Number of times that the payload of `behave` was read. */
let encoded = 0;
beforeEach(async () => {
  const path = socketPath();
  ran = 0;
  const server = createServer().add(EchoDefinition, {
    echo: (request) => request,
    /** Texts are encoded in the arena, unlike bytes, which are sent in place. */
    behave: () => {
      ++ran;
      const payload = new Uint8Array(new SharedArrayBuffer(700 * KiB));
      return {
        get payload() {
          ++encoded;
          return payload;
        },
      };
    },
    fetch: ({ number }) => {
      ++ran;
      return { number, text: 'x'.repeat(number) };
    },
  });
  channel = createChannel(await server.listen(`unix:${path}`));
  close = async () => {
    await channel.close();
    await server.shutdown({ graceMs: 0 });
    rmSync(path, { force: true });
  };
  await createClient(EchoDefinition, channel).echo({});
});
afterEach(async () => {
  release();
  await close();
});

/** Uses all of the arena except for one small block. */
function fill(): void {
  for (let bytes = 1024 * KiB; bytes > 4 * KiB; bytes /= 2) {
    try {
      for (;;) leases.push(allocBuffer(bytes - 4 * KiB, channel));
    } catch (error) {
      expect(error).toBeInstanceOf(RpcError);
    }
  }
}

function release(): void {
  for (const lease of leases) lease.release();
  leases = [];
}

async function begun(count: number): Promise<void> {
  const client = createClient(EchoDefinition, channel);
  while (ran < count) await client.echo({});
}

describe('a response that must be copied while the arena is full', { timeout: 60_000 }, () => {
  test('waits until there is room, in order, and small calls continue', async () => {
    const client = createClient(EchoDefinition, channel);
    fill();
    const order: number[] = [];
    const calls = Array.from({ length: 5 }, async (_, each) => {
      const number = 600 * KiB + each;
      const answer = await client.fetch({ number });
      order.push(each);
      return answer.text.length === number;
    });
    await begun(5);
    for (let i = 0; i < 50; ++i) expect(await client.echo({ number: i })).toMatchObject({ number: i });
    expect(order).toEqual([]);
    release();
    expect(await Promise.all(calls)).toEqual([true, true, true, true, true]);
    expect([...order].sort()).toEqual([0, 1, 2, 3, 4]);
    // Each handler has run once.
    expect(ran).toBe(5);
  });

  test("causes an error that names the exhausted resource, before the caller's deadline", async () => {
    const client = createClient(EchoDefinition, channel);
    fill();
    // A tenth of the time is left for the answer to arrive.
    await expect(client.fetch({ number: 600 * KiB }, { timeoutMs: 3000 })).rejects.toMatchObject({
      code: Status.RESOURCE_EXHAUSTED,
      processed: 'yes',
      message: expect.stringMatching(names),
    });
    release();
    expect((await client.fetch({ number: 600 * KiB })).text.length).toBe(600 * KiB);
  });

  test('does not wait for ever', async () => {
    const client = createClient(EchoDefinition, channel);
    fill();
    await expect(client.fetch({ number: 600 * KiB })).rejects.toMatchObject({
      code: Status.RESOURCE_EXHAUSTED,
      processed: 'yes',
      message: expect.stringMatching(names),
    });
  });

  test('stops waiting when its call is cancelled, and the responses behind it continue', async () => {
    const client = createClient(EchoDefinition, channel);
    fill();
    const controller = new AbortController();
    const first = client.fetch({ number: 3000 * KiB }, { signal: controller.signal });
    await begun(1);
    const second = client.fetch({ number: 200 * KiB });
    await begun(2);
    controller.abort();
    await expect(first).rejects.toMatchObject({ code: Status.CANCELLED });
    // The memory suffices only for the second.
    leases.pop()?.release();
    for (const lease of leases.splice(0, 1)) lease.release();
    expect((await second).text.length).toBe(200 * KiB);
  });

  test('is encoded again when memory is returned, but not because of memory that it returned itself', async () => {
    const client = createClient(EchoDefinition, channel);
    // This size leaves room for the bytes around the payload. The payload is not in the arena, but must be
    // copied into it.
    const around = allocBuffer(1, channel);
    fill();
    around.release();
    const call = client.behave({});
    await begun(1);
    for (let i = 0; i < 100; ++i) await client.echo({});
    // Each attempt encodes the payload about five times.
    expect(encoded).toBeLessThan(20);
    release();
    expect((await call).payload.length).toBe(700 * KiB);
  });

  test('ends with its connection', async () => {
    const client = createClient(EchoDefinition, channel);
    fill();
    const call = client.fetch({ number: 600 * KiB });
    const ended = expect(call).rejects.toMatchObject({ code: Status.UNAVAILABLE });
    await begun(1);
    await channel.close();
    await ended;
  });

  test('is refused at once when it is larger than the arena', async () => {
    const client = createClient(EchoDefinition, channel);
    const started = stats().calls;
    await expect(client.fetch({ number: 9 * 1024 * KiB })).rejects.toMatchObject({
      code: Status.RESOURCE_EXHAUSTED,
      message: expect.stringMatching(/arenaBytes/),
    });
    expect(stats().calls - started).toBe(1);
  });
});
