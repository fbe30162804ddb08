/**
 * Many sockets are opened and closed. Afterwards, both sides must hold only the resources that they held
 * before. RDMA_RPC_CONNECTIONS=100000 sets a larger number, which takes two minutes.
 */
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { stats } from 'rdma-rpc';
import { connect, createServer } from 'rdma-rpc/socket';
import { expect, test } from 'vitest';
import { collector } from '../../runtime/native/collector.ts';

const connections = Number(process.env.RDMA_RPC_CONNECTIONS ?? 20_000);
const atOnce = 50;
/**
 * Bytes by which V8's heap may grow because of code that was compiled late, and tables that keep their size.
 */
const heapGrowthMax = 8 * 1024 * 1024;

test(`${connections} connections leave nothing behind`, async () => {
  const server = createServer((socket) => socket.pipe(socket));
  server.listen('127.0.0.1:0');
  await once(server, 'listening');
  // Keeps the session open while no other socket is open.
  const holder = connect(server.where!);
  await once(holder, 'connect');

  const one = async (): Promise<void> => {
    const socket = connect(server.where!);
    socket.end('x');
    let read = 0;
    for await (const chunk of socket) read += (chunk as Buffer).length;
    if (read !== 1) throw new Error(`${read} bytes came back instead of 1`);
  };
  const open = async (count: number): Promise<void> => {
    let left = count;
    const worker = async (): Promise<void> => {
      while (left-- > 0) await one();
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
  };
  const held = () => {
    collector()?.('all');
    const { sessions, openFds, memoryRegions } = stats();
    return {
      heap: process.memoryUsage().heapUsed,
      exact: { sessions, openFds, memoryRegions, fds: readdirSync('/proc/self/fd').length },
      open: server.connections,
    };
  };

  await open(connections / 10);
  const before = held();
  await open(connections - connections / 10);
  const after = held();
  expect(after.exact).toEqual(before.exact);
  expect(after.heap - before.heap).toBeLessThan(heapGrowthMax);
  // The sockets of the holding side. The other side of the last sockets may not have ended yet.
  expect(after.open).toBeLessThanOrEqual(1 + atOnce);
  holder.destroy();
  await once(holder, 'close');
  server.close();
  await once(server, 'close');
  expect(server.connections).toBe(0);
});
