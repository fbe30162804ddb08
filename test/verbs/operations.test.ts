/**
 * Tests the operations of queue pairs of `rdma-rpc/verbs` on each software device, with both ways to wait.
 */
import { openDevice, SendBatch, SendFlags, WcOpcode, WcStatus } from 'rdma-rpc/verbs';
import { describe, expect, test } from 'vitest';
import { type Fabric, fabrics, openPair, postReceives, take } from './ends.ts';

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

describe.each<Fabric>([...fabrics])('on %s', (fabric) => {
  test('a SEND goes into the oldest receive, and both sides have a completion', async () => {
    using pair = await openPair(fabric);
    const { a, b } = pair;
    postReceives(b, 2);
    a.mr.bytes.set(Buffer.from('hello'));
    a.qp.post(new SendBatch(1).send(7, SendFlags.signaled).sge(a.mr, 0, 5));
    expect(await take(b.cq, 1, a.cq)).toEqual([
      { wrId: 0, status: WcStatus.success, opcode: WcOpcode.recv, byteLength: 5, imm: 0 },
    ]);
    expect(await take(a.cq, 1, b.cq)).toMatchObject([
      { wrId: 7, status: WcStatus.success, opcode: WcOpcode.send },
    ]);
    expect(text(b.mr.bytes.subarray(0, 5))).toBe('hello');
  });

  test('a WRITE changes the memory of the peer, and the peer gets no completion', async () => {
    using pair = await openPair(fabric);
    const { a, b } = pair;
    a.mr.bytes.set(Buffer.from('written'));
    a.qp.post(new SendBatch(1).write(1, b.mr.addr + 100, b.mr.rkey, SendFlags.signaled).sge(a.mr, 0, 7));
    expect(await take(a.cq, 1, b.cq)).toMatchObject([
      { wrId: 1, status: WcStatus.success, opcode: WcOpcode.rdmaWrite },
    ]);
    expect(text(b.mr.bytes.subarray(100, 107))).toBe('written');
  });

  test('a READ copies from the memory of the peer', async () => {
    using pair = await openPair(fabric);
    const { a, b } = pair;
    b.mr.bytes.set(Buffer.from('to be read'), 9);
    a.qp.post(new SendBatch(1).read(2, b.mr.addr + 9, b.mr.rkey, SendFlags.signaled).sge(a.mr, 200, 10));
    expect(await take(a.cq, 1, b.cq)).toMatchObject([
      { wrId: 2, status: WcStatus.success, opcode: WcOpcode.rdmaRead },
    ]);
    expect(text(a.mr.bytes.subarray(200, 210))).toBe('to be read');
  });

  test('a WRITE with immediate consumes a receive and delivers its number', async ({ skip }) => {
    using pair = await openPair(fabric);
    const { a, b } = pair;
    skip(!a.device.capabilities.immediate, 'the device has no immediates');
    postReceives(b, 1);
    a.mr.bytes.set(Buffer.from('noted'));
    a.qp.post(new SendBatch(1).writeWithImm(3, b.mr.addr + 500, b.mr.rkey, 0xdead_beef).sge(a.mr, 0, 5));
    expect(await take(b.cq, 1, a.cq)).toMatchObject([
      { wrId: 0, status: WcStatus.success, opcode: WcOpcode.recvRdmaWithImm, imm: 0xdead_beef },
    ]);
    expect(text(b.mr.bytes.subarray(500, 505))).toBe('noted');
  });

  test('a wrong remote key ends the queue pair, and the completion has the status', async () => {
    using pair = await openPair(fabric);
    const { a, b } = pair;
    a.qp.post(new SendBatch(1).write(4, b.mr.addr, b.mr.rkey + 1).sge(a.mr, 0, 8));
    const [failed] = await take(a.cq, 1, b.cq);
    expect(failed!.status).not.toBe(WcStatus.success);
    expect(a.qp.state).toBe('ERR');
    a.qp.post(new SendBatch(1).send(5).sge(a.mr, 0, 8));
    expect(await take(a.cq, 1, b.cq)).toMatchObject([{ wrId: 5, status: WcStatus.wrFlushErr }]);
  });

  test('completions are awaited in batches, and the loop ends with the queue', async () => {
    using pair = await openPair(fabric);
    const { a, b } = pair;
    postReceives(b, 8);
    const loop = (async () => {
      const got: number[] = [];
      for await (const batch of b.cq) {
        for (let i = 0; i < batch.length; ++i) got.push(batch.wrId(i));
        if (got.length === 8) break;
      }
      return got;
    })();
    const batch = new SendBatch(1).send(0, SendFlags.signaled).sge(a.mr, 0, 4);
    for (let i = 0; i < 8; ++i) {
      a.qp.post(batch);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await loop).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    // On tcp the receiving side acknowledges while it is polled.
    await take(a.cq, 8, b.cq);
    const idle = (async () => {
      for await (const _ of b.cq) throw new Error('nothing arrives');
    })();
    await new Promise((resolve) => setImmediate(resolve));
    b.cq.close();
    await idle;
  });
});

test('an unknown device is refused by name', () => {
  expect(() => openDevice('no-such-device')).toThrow(/no-such-device/);
});
