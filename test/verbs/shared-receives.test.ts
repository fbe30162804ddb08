/**
 * Tests shared receives whose queue pair ends before their completions were polled. The receives belong to
 * the shared queue, so they must come back with their messages.
 */
import { openDevice, type QueuePair, RecvBatch, SendBatch, SendFlags } from 'rdma-rpc/verbs';
import { expect, test } from 'vitest';
import { take } from './ends.ts';

test.each<[string, (receiver: QueuePair) => void]>([
  ['closed', (receiver) => receiver.close()],
  ['reset', (receiver) => receiver.modify('RESET')],
])('the messages of a queue pair that is %s can be polled, and their receives come back', async (_, end) => {
  using device = openDevice('sim');
  using pd = device.allocPd();
  using sends = device.createCq();
  using receives = device.createCq();
  using srq = pd.createSrq({ cq: receives, wrMax: 8 });
  using mr = pd.regMr(pd.allocBuffer(4096));
  using own = pd.regMr(pd.allocBuffer(4096));
  const batch = new RecvBatch(8);
  for (let i = 0; i < 8; ++i) batch.recv(100 + i, mr, i * 64, 64);
  srq.postRecv(batch);
  using sender = pd.createQp({ type: 'rc', cq: sends });
  using receiver = pd.createQp({ type: 'rc', cq: receives, role: 'accept', srq });
  await Promise.all([sender.connect(receiver.address), receiver.accept(sender.address)]);
  for (let i = 0; i < 3; ++i) sender.post(new SendBatch(1).send(i, SendFlags.signaled).sge(own, 0, 4));
  expect(await take(sends, 3)).toHaveLength(3);
  end(receiver);
  await receives.ready();
  expect(await take(receives, 3)).toEqual(
    [100, 101, 102].map((wrId) => expect.objectContaining({ wrId, status: 0, byteLength: 4 })),
  );
  expect(srq.room).toBe(3);
});
