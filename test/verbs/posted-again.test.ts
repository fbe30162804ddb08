/**
 * Tests a batch that is posted again. Native code reads the same batch only once, so these tests change
 * everything that a batch depends on between two posts: its requests, its queue, and the objects that it
 * names.
 */
import fc from 'fast-check';
import { RecvBatch, SendBatch, SendFlags, WcStatus } from 'rdma-rpc/verbs';
import { describe, expect, test } from 'vitest';
import { type End, type Fabric, fabrics, openEnd, openPair, take } from './ends.ts';

const { signaled } = SendFlags;
const qkey = 0x77;
const seed = 44;
const numRuns = 40;

/** Posts receives of one byte each at `offset`, and the batch, and returns the bytes that have arrived. */
async function received(a: End, b: End, batch: SendBatch, offset = 2048): Promise<number[]> {
  const receives = new RecvBatch(batch.length);
  for (let i = 0; i < batch.length; ++i) receives.recv(i, b.mr, offset + i, 1);
  b.qp.postRecv(receives);
  a.qp.post(batch);
  expect(await take(b.cq, batch.length, a.cq)).toEqual(
    Array.from({ length: batch.length }, (_, i) => expect.objectContaining({ wrId: i, status: 0 })),
  );
  expect((await take(a.cq, batch.length, b.cq)).map(({ status }) => status)).toEqual(
    Array(batch.length).fill(WcStatus.success),
  );
  return [...b.mr.bytes.subarray(offset, offset + batch.length)];
}

/** Returns a batch that sends the bytes of `mr` at these offsets, one byte in a message. */
const bytesAt = (mr: End['mr'], offsets: readonly number[]): SendBatch => {
  const batch = new SendBatch(8);
  offsets.forEach((offset, i) => {
    batch.send(i, signaled).sge(mr, offset, 1);
  });
  return batch;
};

describe.each<Fabric>([...fabrics])('on %s', (fabric) => {
  test('each post sends the bytes that the memory has then', async () => {
    using pair = await openPair(fabric);
    const { a, b } = pair;
    const batch = bytesAt(a.mr, [0, 1]);
    for (const value of [3, 4, 5]) {
      a.mr.bytes.fill(value);
      expect(await received(a, b, batch)).toEqual([value, value]);
    }
  });

  test('a batch can be changed, extended and emptied between posts', async () => {
    using pair = await openPair(fabric, { sgeMax: 2 });
    const { a, b } = pair;
    a.mr.bytes.set([10, 11, 12, 13]);
    const batch = new SendBatch(4, 2).send(0, signaled);
    batch.sge(a.mr, 0, 1);
    expect(await received(a, b, batch)).toEqual([10]);
    batch.send(1, signaled).sge(a.mr, 1, 1);
    expect(await received(a, b, batch)).toEqual([10, 11]);
    batch.clear().send(0, signaled).sge(a.mr, 2, 1).send(1, signaled).sge(a.mr, 3, 1);
    expect(await received(a, b, batch)).toEqual([12, 13]);
    a.qp.post(batch.clear());
    // The last request gets a second entry, so its message is too long for its receive.
    batch.send(0, signaled).sge(a.mr, 0, 1);
    expect(await received(a, b, batch)).toEqual([10]);
    batch.sge(a.mr, 1, 1);
    b.qp.postRecv(new RecvBatch(1).recv(5, b.mr, 0, 64));
    a.qp.post(batch);
    expect(await take(b.cq, 1, a.cq)).toMatchObject([{ wrId: 5, byteLength: 2 }]);
  });

  test('a batch is refused once its memory is closed, and the queue pair keeps working', async () => {
    using pair = await openPair(fabric);
    const { a, b } = pair;
    const mr = a.pd.regMr(a.pd.allocBuffer(64));
    const closedLater = bytesAt(mr, [0]);
    await received(a, b, closedLater);
    mr.close();
    expect(() => a.qp.post(closedLater)).toThrow(/request 0 of the batch: no open memory region/);
    expect(() => a.qp.post(closedLater)).toThrow(/no open memory region/);
    a.mr.bytes.fill(9);
    expect(await received(a, b, bytesAt(a.mr, [0]))).toEqual([9]);
  });

  test('receives are refused once their memory is closed', async () => {
    using pair = await openPair(fabric);
    const { a, b } = pair;
    const mr = b.pd.regMr(b.pd.allocBuffer(64));
    const receives = new RecvBatch(1).recv(3, mr);
    b.qp.postRecv(receives);
    b.qp.postRecv(receives);
    mr.close();
    expect(() => b.qp.postRecv(receives)).toThrow(/no open memory region/);
    a.qp.post(new SendBatch(1).send(1, signaled).sge(a.mr, 0, 8));
    expect(await take(b.cq, 1, a.cq)).toMatchObject([{ wrId: 3, byteLength: 8 }]);
  });

  test('a batch goes to several queue pairs in turns, each with limits of its own', async () => {
    using pair = await openPair(fabric);
    const { a, b } = pair;
    using small = a.pd.createQp({ type: 'rc', cq: a.cq, role: 'connect', sendWrMax: 1 });
    using peer = b.pd.createQp({ type: 'rc', cq: b.cq, role: 'accept' });
    await Promise.all([small.connect(peer.address), peer.accept(small.address)]);
    a.mr.bytes.set([20, 21]);
    const [one, two] = [bytesAt(a.mr, [1]), bytesAt(a.mr, [0, 1])];
    for (let i = 0; i < 3; ++i) {
      expect(await received(a, b, two)).toEqual([20, 21]);
      expect(() => small.post(two)).toThrow(/room for 1 of these 2 requests/);
      expect(await received({ ...a, qp: small }, { ...b, qp: peer }, one)).toEqual([21]);
      expect(await received(a, b, one)).toEqual([21]);
    }
  });
});

test('a datagram is refused once its address handle is closed', async () => {
  using a = openEnd('sim', 'connect', { type: 'ud', qkey });
  using b = openEnd('sim', 'accept', { type: 'ud', qkey });
  await Promise.all([a.qp.connect(new Uint8Array()), b.qp.accept(new Uint8Array())]);
  const to = a.pd.createAh({ gid: b.device.gid });
  const batch = new SendBatch(1).send(1, signaled).sge(a.mr, 0, 8).to(to, b.qp.qpNum, qkey);
  for (let i = 0; i < 2; ++i) {
    a.qp.post(batch);
    expect(await take(a.cq, 1, b.cq)).toMatchObject([{ wrId: 1, status: WcStatus.success }]);
  }
  to.close();
  expect(() => a.qp.post(batch)).toThrow(/needs an open address handle/);
});

test('a shared queue refuses receives once their memory is closed', async () => {
  using end = openEnd('sim', 'accept');
  using srq = end.pd.createSrq({ cq: end.cq, wrMax: 8 });
  const mr = end.pd.regMr(end.pd.allocBuffer(64));
  const receives = new RecvBatch(2).recv(1, mr, 0, 8).recv(2, mr, 8, 8);
  srq.postRecv(receives);
  srq.postRecv(receives);
  expect(srq.room).toBe(4);
  mr.close();
  expect(() => srq.postRecv(receives)).toThrow(/no open memory region/);
  expect(srq.room).toBe(4);
});

/** A step of a program: it posts one of three batches, fills it anew, or makes its region anew. */
type Step = readonly [what: 'post' | 'fill' | 'reopen', batch: number, values: readonly number[]];
const steps = fc.array(
  fc.tuple(
    fc.constantFrom('post', 'post', 'fill', 'reopen') as fc.Arbitrary<Step[0]>,
    fc.nat(2),
    fc.array(fc.nat(255), { minLength: 1, maxLength: 8 }),
  ),
  { minLength: 1, maxLength: 30 },
);

test('whatever is posted, filled and closed in turns, the right bytes arrive', async () => {
  using pair = await openPair('sim');
  const { a, b } = pair;
  await fc.assert(
    fc.asyncProperty(steps, async (program) => {
      const made = Array.from({ length: 3 }, () => {
        const mr = a.pd.regMr(a.pd.allocBuffer(256));
        mr.bytes.set(Uint8Array.from({ length: 256 }, (_, i) => i));
        return { mr, values: [0] as readonly number[], batch: bytesAt(mr, [0]), stale: false };
      });
      for (const [what, which, values] of program) {
        const one = made[which]!;
        if (what === 'reopen') {
          one.mr.close();
          one.mr = a.pd.regMr(a.pd.allocBuffer(256));
          one.mr.bytes.set(Uint8Array.from({ length: 256 }, (_, i) => i));
          one.stale = true;
        } else if (what === 'fill') {
          one.batch.clear();
          values.forEach((value, i) => {
            one.batch.send(i, signaled).sge(one.mr, value, 1);
          });
          Object.assign(one, { values, stale: false });
        } else if (one.stale) {
          expect(() => a.qp.post(one.batch)).toThrow(/no open memory region|are not all in/);
        } else {
          expect(await received(a, b, one.batch)).toEqual([...one.values]);
        }
      }
      for (const { mr } of made) mr.close();
    }),
    { seed, numRuns },
  );
});
