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
import { until } from '../outcomes.ts';

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
}

interface Held {
  readonly sessions: number;
  readonly memoryRegions: number;
  readonly fds: number;
  readonly heap: number;
}

/**
 * Collects garbage first. What a handle holds may be collected some iterations after the handle has closed.
 */
function held(): Held {
  collector()?.('all');
  const { sessions, memoryRegions } = stats();
  const fds = readdirSync('/proc/self/fd').length;
  return { sessions, memoryRegions, fds, heap: process.memoryUsage().heapUsed };
}

/** Names what has grown since `before`, and by how much. */
function grown(before: Held): string[] {
  const now = held();
  const allowed: Held = { sessions: 0, memoryRegions: 0, fds: 0, heap: heapGrowthMax };
  return (Object.keys(allowed) as (keyof Held)[])
    .filter((what) => now[what] > before[what] + allowed[what])
    .map((what) => `${what}: ${before[what]}, then ${now[what]}`);
}

test(`${connections} connections leave nothing behind`, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tunnel-many-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  let programs = 0;
  const echo = await program((socket) => {
    ++programs;
    socket.pipe(socket).once('close', () => --programs);
  });
  const tunnel = await tunnelTo(echo.address, `unix:${join(folder, 'near')}`);
  const { near, far } = tunnel.counts;
  const carry = async (count: number): Promise<void> => {
    const all = near.accepted + count;
    await open(tunnel, count);
    // The sockets of the clients are closed. The other three sockets of each connection may close later.
    await until(() => near.accepted === all && far.accepted === all);
    await until(() => near.open + far.open + programs === 0);
  };
  await carry(connections / 10);
  const before = held();
  await carry(connections - connections / 10);
  // The system closes some descriptors later than the sockets report it.
  await expect.poll(() => grown(before), { timeout: 60_000, interval: 100 }).toEqual([]);
  expect(near.accepted).toBe(connections);
  await tunnel.close();
  await echo.close();
});
