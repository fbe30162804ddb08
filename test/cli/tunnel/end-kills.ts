/**
 * Kills one end of a tunnel with SIGKILL in the middle of transfers, again and again, and starts it anew.
 * killed-ends.test.ts uses this file, and so does the slow suite, with many more kills.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { kill, Latch, type Seen, watch } from '../../socket/kills.ts';
import { type Running, start } from './running.ts';

/**
 * The kernel ends the connections of the killed end: with a reset if it had unread bytes, otherwise with an
 * orderly end. The surviving end knows that bytes may be lost, so its programs always see a reset. A unix
 * socket has no reset. The programs run in this process, whose Node may report a reset as an end (`watch`).
 */
const cutByKernel = /^(end|reset|((end|reset), )?error (ECONNRESET|EPIPE)), close$/;
const cutByTunnel = /^(reset|(reset, )?error (ECONNRESET|EPIPE)), close$/;

/**
 * Kills an end `rounds` times, and expects on both sides that each of `connections` connections ended once,
 * with right bytes before its end. The surviving end carries the connections of all rounds.
 */
export async function expectEndsOfPrograms(
  killed: 'near' | 'far',
  rounds: number,
  connections: number,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tunnel-kills-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const clients: Seen = { events: [], wrongBytes: 0 };
  const servers: Seen = { events: [], wrongBytes: 0 };
  let latch = new Latch(0);
  let closed: Promise<void>[] = [];
  const server = createServer((socket) => closed.push(watch(socket, servers, () => latch.down())));
  server.listen(join(folder, 'program'));
  await once(server, 'listening');
  const startEnd = {
    far: () => start('--serve', `unix:${join(folder, 'far')}`, '--to', `unix:${join(folder, 'program')}`),
    near: () => start('--listen', '127.0.0.1:0', '--to', `unix:${join(folder, 'far')}`),
  } as const;
  const ends: Record<'near' | 'far', Running> = {
    far: await startEnd.far(),
    near: await startEnd.near(),
  };
  for (let round = 0; round < rounds; round++) {
    closed = [];
    // The latch opens when both programs of each connection have received data.
    latch = new Latch(2 * connections);
    const port = Number(ends.near.bound.split(':')[1]);
    for (let i = 0; i < connections; i++)
      closed.push(watch(connect(port, '127.0.0.1'), clients, () => latch.down()));
    await latch.reached;
    await kill(ends[killed].child);
    await Promise.all(closed);
    ends[killed] = await startEnd[killed]();
  }
  expect([clients.wrongBytes, servers.wrongBytes]).toEqual([0, 0]);
  for (const [seen, right] of [
    [clients, killed === 'far' ? cutByTunnel : cutByKernel],
    // These are unix sockets.
    [servers, cutByKernel],
  ] as const) {
    expect(seen.events).toHaveLength(rounds * connections);
    expect(seen.events.map((each) => each.join(', ')).filter((each) => !right.test(each))).toEqual([]);
  }
  for (const end of ['near', 'far'] as const) {
    ends[end].child.kill('SIGTERM');
    expect(await ends[end].exit).toBe(0);
  }
  server.close();
  await once(server, 'close');
}
