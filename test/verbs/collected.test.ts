/** Tests devices that the application drops without closing them: they are closed when they are collected. */
import { readdirSync } from 'node:fs';
import { Completions, openDevice, RecvBatch, SendBatch } from 'rdma-rpc/verbs';
import { expect, test } from 'vitest';
import { type Fabric, fabrics, openPair } from './ends.ts';
import { collectAll } from './garbage.ts';

const openFiles = (): number => readdirSync('/proc/self/fd').length;

/** Uses every part of a pair: a posted receive, a send, and a completion that was waited for. */
async function useAndDrop(fabric: Fabric): Promise<void> {
  const { a, b } = await openPair(fabric);
  b.qp.postRecv(new RecvBatch(1).recv(1, b.mr));
  a.qp.post(new SendBatch(1).send(1).sge(a.mr, 0, 8));
  for await (const batch of b.cq) if (batch.length > 0) break;
}

test.each<Fabric>([...fabrics])('on %s', async (fabric) => {
  await useAndDrop(fabric);
  await collectAll();
  const before = openFiles();
  for (let i = 0; i < 10; ++i) await useAndDrop(fabric);
  await collectAll();
  expect(openFiles()).toBeLessThanOrEqual(before);
});

test('a queue keeps its device', async () => {
  const cq = openDevice('sim').createCq();
  await collectAll();
  expect(cq.poll(new Completions(1))).toBe(0);
});
