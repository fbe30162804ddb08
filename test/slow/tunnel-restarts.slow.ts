/**
 * 500 programs at a time send through a tunnel whose far end is killed and started again, several times.
 * Each program sends, ends its side, and reads the echo. It must get the whole echo, or an error; an orderly
 * end after a part of the echo would be lost data that nobody notices. `--metrics` is asked all the time.
 * RDMA_RPC_RESTARTS sets another number of kills.
 */
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { start } from '../cli/tunnel/running.ts';
import { until } from '../outcomes.ts';
import { kill } from '../socket/kills.ts';

const kills = Number(process.env.RDMA_RPC_RESTARTS ?? 4);
const programs = 500;
const pattern = Buffer.alloc(200_000, 'a restarted tunnel');

type Outcome = 'whole' | 'error' | 'wrong bytes' | 'a part';

/** Every third program resets its connection at the first data. The number of bytes varies. */
function echo(address: string, number: number): Promise<Outcome> {
  const bytes = pattern.subarray(0, 1 + ((number * 7919) % pattern.length));
  const [host, port] = address.split(':');
  const socket = connect({ port: Number(port), host, allowHalfOpen: true });
  const received: Buffer[] = [];
  let failed = false;
  socket.on('data', (data: Buffer) => {
    received.push(data);
    if (number % 3 === 0) socket.resetAndDestroy();
  });
  socket.on('error', () => {
    failed = true;
  });
  socket.end(bytes);
  return new Promise((resolve) => {
    socket.on('close', () => {
      const all = Buffer.concat(received);
      if (!bytes.subarray(0, all.length).equals(all)) resolve('wrong bytes');
      else if (failed || number % 3 === 0) resolve('error');
      else resolve(all.length === bytes.length ? 'whole' : 'a part');
    });
  });
}

const value = (text: string, name: string): number =>
  Number(new RegExp(`^rdma_rpc_tunnel_${name} (\\d+)$`, 'm').exec(text)?.[1]);

test(`a far end that is killed and started ${kills} times`, { timeout: 600_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tunnel-restarts-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const server = createServer({ allowHalfOpen: true }, (socket) =>
    socket.on('error', () => undefined).pipe(socket),
  );
  server.listen(join(folder, 'program'));
  await once(server, 'listening');
  const startFar = () =>
    start('--serve', `unix:${join(folder, 'far')}`, '--to', `unix:${join(folder, 'program')}`);
  let far = await startFar();
  const near = await start('--listen', '127.0.0.1:0', '--to', far.bound, '--metrics', '127.0.0.1:0');
  await until(() => near.lines.length > 0);
  const url = /http:\S+/.exec(near.lines.join('\n'))![0];
  const metrics = async (): Promise<string> => (await fetch(url)).text();
  const descriptors = (): number => readdirSync(`/proc/${near.child.pid}/fd`).length;
  await echo(near.bound, 1);
  const before = descriptors();

  const outcomes: Record<Outcome, number> = { whole: 0, error: 0, 'wrong bytes': 0, 'a part': 0 };
  let number = 0;
  let going = true;
  const worker = async (): Promise<void> => {
    while (going) ++outcomes[await echo(near.bound, ++number)];
  };
  let accepted = 0;
  const scraper = async (): Promise<void> => {
    while (going) {
      const now = value(await metrics(), 'connections_total');
      expect(now).toBeGreaterThanOrEqual(accepted);
      accepted = now;
    }
  };
  const work = Promise.all([...Array.from({ length: programs }, worker), scraper()]);
  for (let i = 0; i < kills; i++) {
    const enough = outcomes.whole + programs;
    await until(() => outcomes.whole >= enough);
    await kill(far.child);
    const lost = outcomes.error + programs / 2;
    await until(() => outcomes.error >= lost);
    far = await startFar();
  }
  const enough = outcomes.whole + programs;
  await until(() => outcomes.whole >= enough);
  going = false;
  await work;
  expect([outcomes['wrong bytes'], outcomes['a part']]).toEqual([0, 0]);
  await expect.poll(async () => value(await metrics(), 'connections_open'), { timeout: 60_000 }).toBe(0);
  expect(value(await metrics(), 'connections_total')).toBe(number + 1);
  await expect.poll(descriptors, { timeout: 60_000 }).toBeLessThanOrEqual(before + 1);
  for (const each of [near, far]) each.child.kill('SIGTERM');
  expect([await near.exit, await far.exit]).toEqual([0, 0]);
  server.close();
});
