/**
 * Tests features that only some devices have: shared receives, immediates of SENDs, atomics, UC and UD. A
 * device that lacks a feature gives the reason, and refuses the feature with that reason.
 */
import {
  Access,
  Completions,
  type Device,
  type Feature,
  openDevice,
  RecvBatch,
  SendBatch,
  SendFlags,
  VerbsError,
  WcFlags,
  WcOpcode,
  WcStatus,
} from 'rdma-rpc/verbs';
import { describe, expect, test } from 'vitest';
import { type Fabric, fabrics, openPair, take } from './ends.ts';

const signaled = SendFlags.signaled;

function whyNot(fabric: Fabric, feature: Feature): string | undefined {
  using device: Device = openDevice(fabric);
  return device.whyNot(feature);
}

describe.each<Fabric>([...fabrics])('on %s', (fabric) => {
  test('two queue pairs share their receives', async ({ skip }) => {
    const why = whyNot(fabric, 'sharedReceives');
    skip(why !== undefined, why);
    using a = openDevice(fabric);
    using b = openDevice(fabric);
    using aPd = a.allocPd();
    using bPd = b.allocPd();
    using aCq = a.createCq();
    using bCq = b.createCq();
    using srq = bPd.createSrq({ cq: bCq, wrMax: 8 });
    using mr = bPd.regMr(bPd.allocBuffer(4096));
    using own = aPd.regMr(aPd.allocBuffer(4096));
    const pairs = [0, 1].map(() => {
      const sender = aPd.createQp({ type: 'rc', cq: aCq, role: 'connect' });
      const receiver = bPd.createQp({ type: 'rc', cq: bCq, role: 'accept', srq });
      return { sender, receiver };
    });
    for (const { sender, receiver } of pairs)
      await Promise.all([sender.connect(receiver.address), receiver.accept(sender.address)]);
    const receives = new RecvBatch(8);
    for (let i = 0; i < 8; ++i) receives.recv(100 + i, mr, i * 64, 64);
    srq.postRecv(receives);
    expect(srq.room).toBe(0);
    expect(() => srq.postRecv(receives)).toThrow(expect.objectContaining({ code: 'full' }));
    expect(() => pairs[0]!.receiver.postRecv(new RecvBatch(1).recv(1, mr))).toThrow(/shared queue/);
    for (let i = 0; i < 8; ++i) pairs[i % 2]!.sender.post(new SendBatch(1).send(i, signaled).sge(own, 0, 4));
    const got = await take(bCq, 8, aCq);
    expect(got.map(({ wrId }) => wrId).sort()).toEqual([100, 101, 102, 103, 104, 105, 106, 107]);
    expect(got.every(({ status, byteLength }) => status === WcStatus.success && byteLength === 4)).toBe(true);
    expect(srq.room).toBe(8);
    for (const { sender, receiver } of pairs) for (const qp of [sender, receiver]) qp.close();
  });

  test('a SEND with immediate delivers its number', async ({ skip }) => {
    const why = whyNot(fabric, 'sendWithImm');
    skip(why !== undefined, why);
    using pair = await openPair(fabric);
    const { a, b } = pair;
    b.qp.postRecv(new RecvBatch(1).recv(5, b.mr));
    a.qp.post(new SendBatch(1).sendWithImm(1, 0xffff_fffe).sge(a.mr, 0, 4));
    expect(await take(b.cq, 1, a.cq)).toMatchObject([{ wrId: 5, opcode: WcOpcode.recv, imm: 0xffff_fffe }]);
  });

  test('a loop that waits for solicited messages is woken by them', async ({ skip }) => {
    const why = whyNot(fabric, 'solicited');
    skip(why !== undefined, why);
    using pair = await openPair(fabric);
    const { a, b } = pair;
    b.qp.postRecv(new RecvBatch(2).recv(1, b.mr, 0, 64).recv(2, b.mr, 64, 64));
    let turns = 0;
    const loop = (async () => {
      const got: number[] = [];
      for await (const batch of b.cq.batches(8, true)) {
        ++turns;
        for (let i = 0; i < batch.length; ++i) got.push(batch.wrId(i));
        if (got.length === 2) return got;
      }
      return got;
    })();
    await new Promise((resolve) => setImmediate(resolve));
    a.qp.post(new SendBatch(1).send(1).sge(a.mr, 0, 4));
    for (let i = 0; i < 5; ++i) await new Promise((resolve) => setImmediate(resolve));
    a.qp.post(new SendBatch(1).send(2, SendFlags.solicited).sge(a.mr, 0, 4));
    expect(await loop).toEqual([1, 2]);
    expect(turns).toBeLessThanOrEqual(2);
  });

  test('atomics return the previous value', async ({ skip }) => {
    const why = whyNot(fabric, 'atomics');
    skip(why !== undefined, why);
    using pair = await openPair(fabric);
    const { a, b } = pair;
    const rights = Access.localWrite | Access.remoteAtomic;
    using mr = b.pd.regMr(b.pd.allocBuffer(64), rights);
    const words = new BigUint64Array(mr.bytes.buffer);
    const before = new BigUint64Array(a.mr.bytes.buffer);
    words[1] = 2n ** 64n - 1n;
    a.qp.post(new SendBatch(1).fetchAdd(1, mr.addr + 8, mr.rkey, 3n, signaled).sge(a.mr, 0, 8));
    expect(await take(a.cq, 1, b.cq)).toMatchObject([{ wrId: 1, opcode: WcOpcode.fetchAdd, status: 0 }]);
    expect([before[0], words[1]]).toEqual([2n ** 64n - 1n, 2n]);
    for (const [compare, result] of [
      [9n, 2n],
      [2n, 2n ** 63n],
    ] as const) {
      a.qp.post(
        new SendBatch(1).compareSwap(2, mr.addr + 8, mr.rkey, compare, 2n ** 63n, signaled).sge(a.mr, 0, 8),
      );
      expect(await take(a.cq, 1, b.cq)).toMatchObject([{ wrId: 2, opcode: WcOpcode.compSwap, status: 0 }]);
      expect([before[0], words[1]]).toEqual([2n, result]);
    }
    const wrong = new SendBatch(1).fetchAdd(1, mr.addr + 4, mr.rkey, 3n).sge(a.mr, 0, 8);
    expect(() => a.qp.post(wrong)).toThrow(/multiple of 8/);
    expect(() => a.qp.post(new SendBatch(1).fetchAdd(1, mr.addr, mr.rkey, 3n).sge(a.mr, 0, 4))).toThrow(
      /8 bytes/,
    );
    expect(() => new SendBatch(1).fetchAdd(1, 0, 0, 3 as never)).toThrow(TypeError);
  });

  test('UC carries SENDs and WRITEs, and nothing else', async ({ skip }) => {
    const why = whyNot(fabric, 'uc');
    skip(why !== undefined, why);
    using pair = await openPair(fabric, { type: 'uc' });
    const { a, b } = pair;
    a.mr.bytes.set(Buffer.from('uc'));
    a.qp.post(new SendBatch(1).write(1, b.mr.addr, b.mr.rkey, signaled).sge(a.mr, 0, 2));
    expect(await take(a.cq, 1, b.cq)).toMatchObject([{ wrId: 1, status: 0 }]);
    expect(Buffer.from(b.mr.bytes.subarray(0, 2)).toString()).toBe('uc');
    const read = new SendBatch(1).read(1, b.mr.addr, b.mr.rkey).sge(a.mr, 0, 2);
    expect(() => a.qp.post(read)).toThrow(expect.objectContaining({ code: 'unsupported' }));
  });

  test('a datagram goes to the queue pair that it names, behind its header', async ({ skip }) => {
    const why = whyNot(fabric, 'ud');
    skip(why !== undefined, why);
    using a = openDevice(fabric);
    using b = openDevice(fabric);
    using aPd = a.allocPd();
    using bPd = b.allocPd();
    using aCq = a.createCq();
    using bCq = b.createCq();
    using sender = aPd.createQp({ type: 'ud', cq: aCq });
    using receiver = bPd.createQp({ type: 'ud', cq: bCq, qkey: 77 });
    for (const qp of [sender, receiver]) await qp.connect(new Uint8Array());
    using mr = bPd.regMr(bPd.allocBuffer(4096));
    using own = aPd.regMr(aPd.allocBuffer(4096));
    own.bytes.set(Buffer.from('datagram'));
    const ah = aPd.createAh({ gid: b.gid });
    receiver.postRecv(new RecvBatch(1).recv(3, mr, 0, 256));
    expect(() => sender.post(new SendBatch(1).send(1).sge(own, 0, 8))).toThrow(/address handle/);
    sender.post(new SendBatch(1).send(1, signaled).to(ah, receiver.qpNum, 77).sge(own, 0, 8));
    ah.close();
    const [got] = await take(bCq, 1, aCq);
    expect(got).toMatchObject({ wrId: 3, status: WcStatus.success, byteLength: 48 });
    expect(Buffer.from(mr.bytes.subarray(40, 48)).toString()).toBe('datagram');
    expect(() => new SendBatch(1).send(1).to(ah, 1, 1)).toThrow(/address handle \d+ of \w+ is closed/);
    expect(WcFlags.grh).toBe(1);
  });

  test('a queue pair in ERR can be reset and connected again', async ({ skip }) => {
    const why = whyNot(fabric, 'reset');
    skip(why !== undefined, why);
    using pair = await openPair(fabric);
    const { a, b } = pair;
    for (const { qp, mr } of [a, b]) {
      qp.postRecv(new RecvBatch(1).recv(1, mr));
      qp.toError();
      qp.modify('RESET');
      expect(() => qp.postRecv(new RecvBatch(1).recv(1, mr))).toThrow(/RESET/);
      qp.modify('INIT');
      expect([qp.state, qp.recvRoom]).toEqual(['INIT', 128]);
    }
    await Promise.all([a.qp.connect(b.qp.address), b.qp.accept(a.qp.address)]);
    b.qp.postRecv(new RecvBatch(1).recv(2, b.mr));
    a.qp.post(new SendBatch(1).send(3, signaled).sge(a.mr, 0, 4));
    expect(await take(b.cq, 1, a.cq)).toMatchObject([{ wrId: 2, status: 0 }]);
  });

  test('the device reports that a send queue has drained', async ({ skip }) => {
    const why = whyNot(fabric, 'drain');
    skip(why !== undefined, why);
    using pair = await openPair(fabric);
    const { a } = pair;
    a.qp.modify('SQD');
    for await (const { type, qpNum } of a.device.events) {
      expect([type, qpNum]).toEqual(['sq_drained', a.qp.qpNum]);
      break;
    }
    a.qp.modify('RTS');
    expect(a.qp.state).toBe('RTS');
  });

  test('a feature that the device lacks is refused with the reason', async () => {
    using pair = await openPair(fabric);
    const { a, b } = pair;
    const calls: Partial<Record<Feature, () => unknown>> = {
      sendWithImm: () => a.qp.post(new SendBatch(1).sendWithImm(1, 2).sge(a.mr, 0, 4)),
      atomics: () => a.qp.post(new SendBatch(1).fetchAdd(1, b.mr.addr, b.mr.rkey, 1n).sge(a.mr, 0, 8)),
      uc: () => a.pd.createQp({ type: 'uc', cq: a.cq }),
      ud: () => a.pd.createQp({ type: 'ud', cq: a.cq }),
      sharedReceives: () => a.pd.createSrq({ cq: a.cq, wrMax: 4 }),
      drain: () => a.qp.modify('SQD'),
      reset: () => a.qp.modify('RESET'),
      multicast: () => a.qp.joinMulticast(new Uint8Array(16).fill(0xff)),
    };
    for (const [feature, call] of Object.entries(calls)) {
      const why = a.device.whyNot(feature as Feature);
      if (why === undefined) continue;
      expect(why).toMatch(/\w+ \w+/);
      expect(call, feature).toThrow(VerbsError);
    }
    expect(a.device.whyNot('xrc')).toBeDefined();
    expect(() => a.device.whyNot('flying' as never)).toThrow(TypeError);
  });
});

test('sim loses the same datagrams in each run with the same seed', async () => {
  const run = async (seed: number): Promise<number[]> => {
    using device = openDevice('sim', { seed, lossPpm: 300_000, duplicatePpm: 100_000 });
    using pd = device.allocPd();
    using cq = device.createCq();
    using sends = device.createCq();
    using sender = pd.createQp({ type: 'ud', cq: sends });
    using receiver = pd.createQp({ type: 'ud', cq, qkey: 1 });
    for (const qp of [sender, receiver]) await qp.connect(new Uint8Array());
    using mr = pd.regMr(pd.allocBuffer(8192));
    using ah = pd.createAh({ gid: device.gid });
    const receives = new RecvBatch(100);
    for (let i = 0; i < 100; ++i) receives.recv(i, mr, i * 64, 64);
    receiver.postRecv(receives);
    for (let i = 0; i < 50; ++i) {
      mr.bytes[7000] = i;
      sender.post(
        new SendBatch(1)
          .send(i, signaled | SendFlags.inline)
          .to(ah, receiver.qpNum, 1)
          .sge(mr, 7000, 1),
      );
    }
    const into = new Completions(128);
    expect(sends.poll(into)).toBe(50);
    const count = cq.poll(into);
    return Array.from({ length: count }, (_, i) => mr.bytes[into.wrId(i) * 64 + 40]!);
  };
  const first = await run(7);
  expect(new Set(first).size).toBeLessThan(50);
  expect(new Set(first).size).toBeGreaterThan(10);
  expect(await run(7)).toEqual(first);
  expect(await run(8)).not.toEqual(first);
});
