/**
 * Tests that `rdma-rpc perf` measures features that only some fabrics have, or that both sides say why they
 * cannot.
 */
import { afterEach, expect, test } from 'vitest';
import type { Tested } from '../../../cli/perf/tested.ts';
import { type Outcome, run } from '../command.ts';
import { expectSchema } from '../schemas.ts';
import { type Listener, listener } from './listener.ts';

const open: { kill(): void }[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.kill();
});

async function listening(): Promise<Listener> {
  const found = await listener([]);
  open.push(found);
  return found;
}

const dial = (name: string, port: number, ...args: string[]): Promise<Outcome> =>
  run('perf', name, `127.0.0.1:${port}`, ...args);

test.each(['shm', 'tcp'])('compare-and-swap over %s finds what the one before has left', async (fabric) => {
  const server = await listening();
  const args = ['--fabric', fabric, '-A', 'compare_swap', '-n', '50', '-e', '--validate', '--json'];
  const { code, out, errors } = await dial('atomic_bw', server.port, ...args);
  expect(code, errors).toBe(0);
  const client = expectSchema('perf', JSON.parse(out) as Tested);
  expect(client).toMatchObject({ options: { atomic: 'compare_swap' }, corrupt: 0 });
  expect((await server.ended).code).toBe(0);
});

test.each<[string[], RegExp]>([
  [['-c', 'UC', '--fabric', 'shm'], /shm has no UC queue pairs: its memory loses nothing/],
  [['-c', 'UD', '--fabric', 'tcp'], /tcp has no UD queue pairs: \w+/],
  [['-c', 'UD', '--mcast', '--fabric', 'shm'], /shm has no UD queue pairs: \w+/],
  [['--use-srq', '--fabric', 'shm'], /shm has no shared receive queues: \w+/],
  [['--use-srq', '--fabric', 'tcp'], /tcp has no shared receive queues: \w+/],
  [['-R'], /verbs is off: \w+/],
])('both sides say what a fabric lacks: %s', async (flags, why) => {
  const server = await listening();
  const { code, errors } = await dial('send_bw', server.port, ...flags, '-s', '64');
  expect([code, (await server.ended).code]).toEqual([1, 1]);
  for (const text of [errors, (await server.ended).errors]) expect(text).toMatch(why);
});
