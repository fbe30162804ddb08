/**
 * Tests remote memory between a server on one RDMA device and a client on another. Exposed memory can be
 * read, written and updated, and no write arrives after the rights have ended.
 */
import {
  type Channel,
  createChannel,
  createClient,
  createServer,
  type HandlerContext,
  type Server,
} from 'rdma-rpc';
import { connectMemory, memoryOf, type PeerMemory } from 'rdma-rpc/memory';
import { openDevice } from 'rdma-rpc/verbs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Goods, TraderDefinition } from '../remote-memory/gen/trade.rdma.ts';
import { clientDevice, over, patient, serverDevice } from './pair.ts';

let server: Server;
let channel: Channel;
let own: PeerMemory;
let peers: PeerMemory;

beforeAll(async () => {
  let seen: PeerMemory | undefined;
  server = createServer(over(serverDevice));
  const memories = memoryOf(server);
  server.add(TraderDefinition, {
    trade: (_: Goods, context: HandlerContext) => {
      seen = memories.of(context);
      return {};
    },
  });
  channel = createChannel(await server.listen('127.0.0.1:0'), patient(over(clientDevice)));
  own = await connectMemory(channel);
  await createClient(TraderDefinition, channel).trade({});
  peers = seen!;
});
afterAll(async () => {
  await channel?.close();
  await server?.shutdown();
});

const bytesOf = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text));
const device = openDevice(clientDevice);
const hasAtomics = device.whyNot('atomics') === undefined;
const hasImmediates = device.whyNot('writeWithImm') === undefined;
device.close();

describe('memory of the server', () => {
  test('is read and written by the client', async () => {
    const memory = peers.expose(new SharedArrayBuffer(4096), { read: true, write: true });
    const remote = await own.open(memory.handle);
    await remote.write(bytesOf('over the wire'), 100);
    const back = new Uint8Array(13);
    await remote.read(back, 100);
    expect(Buffer.from(back).toString()).toBe('over the wire');
    expect(Buffer.from(memory.bytes.subarray(100, 113)).toString()).toBe('over the wire');
    await memory.close();
    await expect(remote.read(back, 100)).rejects.toThrow();
    await expect(remote.write(back, 100)).rejects.toThrow();
  });

  test.skipIf(!hasAtomics)('is updated by atomics', async () => {
    const memory = peers.expose(new SharedArrayBuffer(64), { atomic: true });
    const remote = await own.open(memory.handle);
    expect(await remote.fetchAdd(8, 5n)).toBe(0n);
    expect(await remote.compareAndSwap(8, 5n, 9n)).toBe(5n);
    expect(await remote.fetchAdd(8, 1n)).toBe(9n);
    await memory.close();
  });

  test.skipIf(!hasImmediates)('wakes its owner with an immediate', async () => {
    let wake: (value: number) => void;
    const woken = new Promise<number>((resolve) => {
      wake = resolve;
    });
    const memory = peers.expose(new SharedArrayBuffer(64), {
      write: true,
      onWritten: ({ immediate }) => wake(immediate),
    });
    const remote = await own.open(memory.handle);
    await remote.writeWithImmediate(bytesOf('news'), 0, 77);
    expect(await woken).toBe(77);
    await memory.close();
  });
});

test('nothing of many late WRITEs lands', async () => {
  const memory = peers.expose(new SharedArrayBuffer(4096), { read: true, write: true });
  const remote = await own.open(memory.handle);
  const from = new Uint8Array(4096).fill(7);
  await remote.write(from);
  await memory.close();
  memory.bytes.fill(0);
  const late = await Promise.allSettled(Array.from({ length: 200 }, () => remote.write(from)));
  expect(late.every(({ status }) => status === 'rejected')).toBe(true);
  expect(memory.bytes.every((byte) => byte === 0)).toBe(true);
  await createClient(TraderDefinition, channel).trade({});
});
