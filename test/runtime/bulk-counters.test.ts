/**
 * Tests a client's counters of the large messages that it sent and received. These counters need nothing from
 * the server.
 */
import { createChannel, createClient, createServer, stats } from 'rdma-rpc';
import { expect, test } from 'vitest';
import { EchoDefinition } from './gen/echo.rdma.ts';

test.each(['shm', 'tcp'] as const)(
  'over %s requests and responses are counted separately',
  async (fabric) => {
    const server = createServer({ fabric }).add(EchoDefinition, {
      echo: ({ payload }) => ({ payload: new Uint8Array(payload[0] === 1 ? 100_000 : 1) }),
      behave: (r) => r,
    });
    const channel = createChannel(await server.listen('127.0.0.1:0'), { fabric });
    const client = createClient(EchoDefinition, channel);
    const counted = async (bytes: number, first: number) => {
      const before = stats();
      await client.echo({ payload: new Uint8Array(bytes).fill(first) });
      const { bulkRequests, bulkResponses } = stats();
      return [bulkRequests - before.bulkRequests, bulkResponses - before.bulkResponses];
    };
    expect(await counted(10, 0)).toEqual([0, 0]);
    expect(await counted(100_000, 0)).toEqual([1, 0]);
    expect(await counted(10, 1)).toEqual([0, 1]);
    expect(await counted(100_000, 1)).toEqual([1, 1]);
    await channel.close();
    await server.shutdown({ graceMs: 0 });
  },
);
