/**
 * Many short connections go through a tunnel, both ends of which are in this process. Afterwards, the ends
 * must hold only the resources that they held before. RDMA_RPC_CONNECTIONS sets another number.
 */
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stats } from 'rdma-rpc';
import { expect, onTestFinished, test } from 'vitest';
import { collector } from '../../runtime/native/collector.ts';
import { program, type Tunnel, tunnelTo } from '../cli/tunnel/ends.ts';

const connections = Number(process.env.RDMA_RPC_CONNECTIONS ?? 10_000);
const atOnce = 40;
/**
 * Bytes by which V8's heap may grow because of code that is compiled late, and tables that keep their size.
 */
const heapGrowthMax = 8 * 1024 * 1024;

/** Every fifth client leaves before it is answered. */
async function one(tunnel: Tunnel, number: number): Promise<void> {
  const socket = tunnel.dial();
  socket.on('error', () => undefined).resume();
  if (number % 5 === 0) socket.once('connect', () => socket.destroy());
  else socket.end('x');
  await once(socket, 'close');
}

async function open(tunnel: Tunnel, count: number): Promise<void> {
  let left = count;
  const worker = async (): Promise<void> => {
    while (left-- > 0) await one(tunnel, left);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  const { near, far } = tunnel.counts;
  while (near.open + far.open > 0) await new Promise((resolve) => setImmediate(resolve));
}

async function held(): Promise<{ heap: number; exact: object }> {
  // The objects that a handle holds can be collected some iterations after the handle has closed.
  for (let i = 0; i < 3; i++) {
    collector()?.('all');
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { sessions, memoryRegions } = stats();
  const fds = readdirSync('/proc/self/fd').length;
  return { heap: process.memoryUsage().heapUsed, exact: { sessions, memoryRegions, fds } };
}

test(`${connections} connections leave nothing behind`, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tunnel-many-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const echo = await program((socket) => socket.on('error', () => undefined).pipe(socket));
  const tunnel = await tunnelTo(echo.address, `unix:${join(folder, 'near')}`);
  await open(tunnel, connections / 10);
  const before = await held();
  await open(tunnel, connections - connections / 10);
  const after = await held();
  expect(after.exact).toEqual(before.exact);
  expect(after.heap - before.heap).toBeLessThan(heapGrowthMax);
  expect(tunnel.counts.near.accepted).toBe(connections);
  await tunnel.close();
  await echo.close();
});
