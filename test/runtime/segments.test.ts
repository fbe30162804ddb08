/**
 * Tests messages between the size of a slot and bulk transfers. Over fabrics with this capability they are
 * sent in segments, in calls and in streams, and arrive unchanged.
 */
import { createChannel, createClient, createServer, leaseOf, Metadata, stats } from 'rdma-rpc';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { shmSlotBytes, slotBytes } from '../../runtime/limits.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';

const patterned = (bytes: number): Uint8Array =>
  Uint8Array.from({ length: bytes }, (_, i) => (i * 7 + bytes) & 0xff);

/** toEqual compares byte by byte, which takes seconds. */
const expectPatterned = (payload: Uint8Array, bytes: number): void => {
  expect(Buffer.compare(payload, patterned(bytes)), `${payload.length} bytes, ${bytes} expected`).toBe(0);
};

describe.each([
  ['shm', shmSlotBytes],
  ['tcp', slotBytes.default],
] as const)('over %s', (fabric, slot) => {
  let answerBytes = 0;
  const server = createServer({ fabric }).add(EchoDefinition, {
    echo: (request, context) => {
      context.trailer.set('seen', context.metadata.get('given') ?? 'none');
      const { payload } = request;
      expectPatterned(payload, payload.length);
      return { payload: patterned(answerBytes) };
    },
    behave: (request) => request,
  });
  let channel: ReturnType<typeof createChannel>;
  beforeAll(async () => {
    channel = createChannel(await server.listen('127.0.0.1:0'), { fabric });
    await channel.ready();
  });
  afterAll(async () => {
    await channel.close();
    await server.shutdown({ graceMs: 0 });
  });

  const moved = async (requestBytes: number, responseBytes: number, metadata?: Metadata) => {
    answerBytes = responseBytes;
    const before = stats(fabric);
    const { payload } = await createClient(EchoDefinition, channel).echo(
      { payload: patterned(requestBytes) },
      { ...(metadata !== undefined && { metadata }) },
    );
    expectPatterned(payload, responseBytes);
    const { segmentedMessages, bulkRequests, bulkResponses } = stats(fabric);
    return {
      segmented: segmentedMessages - before.segmentedMessages,
      bulk: bulkRequests + bulkResponses - before.bulkRequests - before.bulkResponses,
    };
  };

  test('requests and responses up to a slot, and longer ones up to 32 KiB, arrive', async () => {
    for (const bytes of [8_000, slot - 200, slot - 40])
      expect(await moved(bytes, bytes), `${bytes} bytes`).toEqual({ segmented: 0, bulk: 0 });
    for (const bytes of [slot - 2, slot + 1, slot + 1_024, 16_384, 16_390, 24_600, 32_700].filter(
      (n) => n > slot - 3,
    ))
      expect(await moved(bytes, bytes), `${bytes} bytes`).toEqual({ segmented: 2, bulk: 0 });
    expect(await moved(32_800, 100)).toEqual({ segmented: 0, bulk: 1 });
    expect(await moved(100, 32_800)).toEqual({ segmented: 0, bulk: 1 });
  });

  test('messages with metadata, which counts towards their size, arrive', async () => {
    const metadata = new Metadata({ given: 'x'.repeat(3_000) });
    expect(await moved(28_000, 0, metadata)).toEqual({ segmented: 1, bulk: 0 });
    expect(await moved(31_000, 0, metadata)).toEqual({ segmented: 0, bulk: 1 });
  });

  test('more messages at once than long slots arrive', async () => {
    const client = createClient(EchoDefinition, channel);
    answerBytes = slot + 4_000;
    const sizes = Array.from({ length: 200 }, (_, i) => slot - 92 + Math.floor(((32_000 - slot) / 200) * i));
    const answers = await Promise.all(sizes.map((bytes) => client.echo({ payload: patterned(bytes) })));
    for (const { payload } of answers) expectPatterned(payload, slot + 4_000);
  });

  test('an answer to a call that was READ is written', async () => {
    expect(await moved(60_000, slot + 1_000)).toEqual({ segmented: 0, bulk: 2 });
  });

  test('such messages have no lease', async () => {
    answerBytes = 9_000;
    const answer = await createClient(EchoDefinition, channel).echo({ payload: patterned(10) });
    expect(leaseOf(answer)).toBeUndefined();
  });
});
