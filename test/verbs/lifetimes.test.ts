/**
 * Objects are closed in any order. A closed object throws an error with its name. The parts of that object
 * that other objects need stay open.
 */
import fc from 'fast-check';
import { Completions, openDevice, SendBatch, SendFlags, WcStatus } from 'rdma-rpc/verbs';
import { describe, expect, test } from 'vitest';
import { type End, type Fabric, fabrics, openEnd, openPair, postReceives, take } from './ends.ts';

const seed = 40;
type Name = 'device' | 'pd' | 'cq' | 'qp' | 'mr';
const names: readonly Name[] = ['device', 'pd', 'cq', 'qp', 'mr'];

describe.each<Fabric>([...fabrics])('on %s', (fabric) => {
  test('both ends may close in any order, with requests in flight', async () => {
    const order = fc.shuffledSubarray(
      names.flatMap((name) => [
        [0, name],
        [1, name],
      ]) as [0 | 1, Name][],
      { minLength: 10 },
    );
    await fc.assert(
      fc.asyncProperty(order, async (all) => {
        const { a, b } = await openPair(fabric);
        postReceives(b, 4);
        a.qp.post(new SendBatch(1).send(1, SendFlags.signaled).sge(a.mr, 0, 8));
        a.qp.post(new SendBatch(1).write(2, b.mr.addr, b.mr.rkey).sge(a.mr, 0, 8));
        const into = new Completions(8);
        for (const [end, name] of all) {
          const { [name]: object } = [a, b][end] as End;
          object.close();
          object.close();
          expect(object.closed).toBe(true);
          for (const { cq } of [a, b]) if (!cq.closed) cq.poll(into);
        }
      }),
      { seed, numRuns: 40 },
    );
  });

  test('a closed object throws an error that names it', () => {
    const end = openEnd(fabric, 'connect');
    for (const name of names) end[name].close();
    const calls: readonly (readonly [() => unknown, string])[] = [
      [() => end.device.allocPd(), fabric],
      [() => end.device.createCq(), fabric],
      [() => end.pd.allocBuffer(64), end.pd.name],
      [() => end.pd.regMr(new ArrayBuffer(64)), end.pd.name],
      [() => end.pd.createQp({ type: 'rc', cq: end.cq }), end.pd.name],
      [() => end.cq.poll(new Completions(1)), end.cq.name],
      [() => end.qp.post(new SendBatch(1)), end.qp.name],
      [() => end.qp.state, end.qp.name],
      [() => end.qp.address, end.qp.name],
      [() => end.qp.toError(), end.qp.name],
      [() => end.mr.lkey, end.mr.name],
      [() => end.mr.addr, end.mr.name],
    ];
    for (const [call, name] of calls) {
      expect(call).toThrow(expect.objectContaining({ code: 'closed', message: `${name} is closed` }));
    }
    expect(end.mr.bytes.byteLength).toBe(end.mr.byteLength);
  });

  test('a region that posted requests use stays until they have completed', async () => {
    using pair = await openPair(fabric);
    const { a, b } = pair;
    postReceives(b, 1, 8);
    b.mr.close();
    a.mr.bytes.fill(7);
    a.qp.post(new SendBatch(1).send(1, SendFlags.signaled).sge(a.mr, 0, 8));
    a.mr.close();
    expect(await take(b.cq, 1, a.cq)).toMatchObject([{ status: WcStatus.success, byteLength: 8 }]);
    expect([...b.mr.bytes.subarray(0, 8)]).toEqual(Array(8).fill(7));
  });

  test('a loop and a waiter end when the queue is closed', async () => {
    const end = openEnd(fabric, 'connect');
    const waits = end.cq.ready();
    const loop = end.cq.batches().next();
    await new Promise((resolve) => setImmediate(resolve));
    end.cq.close();
    await expect(waits).rejects.toMatchObject({ code: 'closed' });
    expect(await loop).toMatchObject({ done: true });
    end[Symbol.dispose]();
  });
});

test('a device that was closed has nothing left when its last object is closed', () => {
  const device = openDevice('sim');
  const pd = device.allocPd();
  const mr = pd.regMr(pd.allocBuffer(64));
  device.close();
  expect(mr.addr).toBeGreaterThan(0);
  mr.close();
  pd.close();
  expect(() => device.createCq()).toThrow(/sim is closed/);
});
