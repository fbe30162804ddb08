/** Tests that posting and polling create no objects: a million posts leave the heap as it was. */
import { PerformanceObserver } from 'node:perf_hooks';
import { Completions, RecvBatch, SendBatch, SendFlags } from 'rdma-rpc/verbs';
import { expect, test } from 'vitest';
import { openPair } from './ends.ts';
import { collectAll } from './garbage.ts';

const posts = 1_000_000;
const perRound = 16;
/** A number of 8 bytes for each post would take 8 MB. */
const allowedBytes = 2_000_000;

test('a million posts cause no garbage collection', async () => {
  using pair = await openPair('sim');
  const { a, b } = pair;
  const receives = new RecvBatch(perRound);
  const sends = new SendBatch(perRound);
  for (let i = 0; i < perRound; ++i) {
    receives.recv(i, b.mr, i * 32, 32);
    sends.send(i, SendFlags.signaled | SendFlags.inline).sge(a.mr, 0, 32);
  }
  const into = new Completions(perRound);
  let completions = 0;
  const round = (): void => {
    b.qp.postRecv(receives);
    a.qp.post(sends);
    completions += b.cq.poll(into);
    completions += a.cq.poll(into);
  };
  for (let i = 0; i < 2_000; ++i) round();
  await collectAll();
  completions = 0;
  let collections = 0;
  const observer = new PerformanceObserver((list) => {
    collections += list.getEntries().length;
  });
  observer.observe({ entryTypes: ['gc'] });
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < posts / perRound; ++i) round();
  const grown = process.memoryUsage().heapUsed - before;
  expect(completions).toBe(2 * posts);
  expect(grown).toBeLessThan(allowedBytes);
  // If each of the two million completions created even the smallest object, the young generation would fill
  // twice, and two collections would run.
  await new Promise((resolve) => setTimeout(resolve, 10));
  observer.disconnect();
  expect(collections).toBeLessThanOrEqual(1);
});
