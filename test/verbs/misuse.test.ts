/**
 * Tests each way to use `rdma-rpc/verbs` wrongly, and the error that it throws. The wrong call does not
 * crash, posts nothing and moves no byte, and the pair works afterwards.
 */
import {
  Access,
  Completions,
  openDevice,
  RecvBatch,
  SendBatch,
  SendFlags,
  VerbsError,
  WcStatus,
} from 'rdma-rpc/verbs';
import { describe, expect, test } from 'vitest';
import { type End, type Fabric, fabrics, memoryBytes, openPair, postReceives, take } from './ends.ts';

type Wrong = (a: End, b: End) => unknown;
/** A call, and its error: a class, or the code of a VerbsError. */
type Row = readonly [what: string, call: Wrong, error: 'type' | 'range' | VerbsError['code'], text: RegExp];

const one = (fill: (batch: SendBatch) => SendBatch): SendBatch => fill(new SendBatch(1));
/** Returns a region whose numbers are not those of a registration. */
const forged = (a: End, change: object): End['mr'] =>
  ({ name: 'forged', addr: a.mr.addr, lkey: a.mr.lkey, byteLength: a.mr.byteLength, ...change }) as End['mr'];

/** Returns the memory of a WebAssembly module, whose types this project does not load. */
function webAssemblyBuffer(): ArrayBuffer {
  const { WebAssembly } = globalThis as unknown as {
    WebAssembly: { Memory: new (size: { initial: number }) => { buffer: ArrayBuffer } };
  };
  return new WebAssembly.Memory({ initial: 1 }).buffer;
}

const rows: readonly Row[] = [
  [
    'a range past the region',
    (a) => one((b) => b.send(1).sge(a.mr, 1, memoryBytes)),
    'range',
    /do not lie in/,
  ],
  ['an offset before it', (a) => one((b) => b.send(1).sge(a.mr, -1, 1)), 'range', /must be integers/],
  [
    'an offset that is no integer',
    (a) => one((b) => b.send(1).sge(a.mr, 0.5, 1)),
    'range',
    /must be integers/,
  ],
  ['more entries than the batch has', (a) => one((b) => b.send(1).sge(a.mr).sge(a.mr)), 'range', /no room/],
  ['an entry without a request', (a) => one((b) => b.sge(a.mr)), 'range', /no request yet/],
  ['more requests than the batch has', () => one((b) => b.send(1).send(2)), 'range', /in use/],
  [
    'an address that no region has',
    (a) => a.qp.post(one((b) => b.send(1).sge(forged(a, { addr: 4096 }), 0, 8))),
    'range',
    /are not all in the memory region/,
  ],
  [
    'an lkey that no region has',
    (a) => a.qp.post(one((b) => b.send(1).sge(forged(a, { lkey: 0xffff }), 0, 8))),
    'closed',
    /no open memory region/,
  ],
  [
    'an address that is no number',
    (a) => a.qp.post(one((b) => b.send(1).sge(forged(a, { addr: Number.NaN }), 0, 8))),
    'range',
    /no whole number/,
  ],
  ['a wrId that is negative', (a) => a.qp.post(one((b) => b.send(-1))), 'range', /wrId/],
  ['a wrId past 2^53', (a) => a.qp.post(one((b) => b.send(2 ** 60))), 'range', /wrId/],
  ['unknown flags', (a) => a.qp.post(one((b) => b.send(1, 1 << 20))), 'range', /unknown flags/],
  ['an rkey that is no number', (a) => a.qp.post(one((b) => b.write(1, 0, 'x' as never))), 'range', /rkey/],
  [
    'an immediate past 32 bits',
    (a) => a.qp.post(one((b) => b.writeWithImm(1, 0, 0, 2 ** 32))),
    'range',
    /imm/,
  ],
  [
    'a READ into memory that may not be written',
    (a, b) => {
      using mr = a.pd.regMr(a.pd.allocBuffer(64), 0);
      a.qp.post(one((batch) => batch.read(1, b.mr.addr, b.mr.rkey).sge(mr, 0, 8)));
    },
    'range',
    /without Access.localWrite/,
  ],
  [
    'a receive into memory that may not be written',
    (a) => {
      using mr = a.pd.regMr(a.pd.allocBuffer(64), 0);
      a.qp.postRecv(new RecvBatch(1).recv(1, mr));
    },
    'range',
    /without Access.localWrite/,
  ],
  [
    'a READ that is inline',
    (a, b) => a.qp.post(one((s) => s.read(1, b.mr.addr, b.mr.rkey, SendFlags.inline).sge(a.mr, 0, 8))),
    'range',
    /inline/,
  ],
  [
    'an inline SEND that is too long',
    (a) => {
      const length = a.device.capabilities.maxInline + 1;
      a.qp.post(one((s) => s.send(1, SendFlags.inline).sge(a.mr, 0, length)));
    },
    'range',
    /maxInline/,
  ],
  [
    'more entries than the queue pair has',
    (a) => a.qp.post(new SendBatch(1, 2).send(1).sge(a.mr, 0, 1).sge(a.mr, 1, 1)),
    'range',
    /sgeMax/,
  ],
  [
    'more requests than the send queue has room for',
    (a) => {
      const batch = new SendBatch(17);
      for (let i = 0; i < 17; ++i) batch.send(i).sge(a.mr, 0, 1);
      a.qp.post(batch);
    },
    'full',
    /room for 16 of these 17 requests \(sendWrMax is 16\)/,
  ],
  [
    'more receives than the queue has room for',
    (a) => postReceives(a, 17, 8),
    'full',
    /room for 16 of these 17 requests \(recvWrMax is 16\)/,
  ],
  [
    'a region that was closed',
    (a) => {
      const mr = a.pd.regMr(a.pd.allocBuffer(64));
      mr.close();
      one((s) => s.send(1).sge(mr, 0, 1));
    },
    'closed',
    /memory region \d+ of \w+ is closed/,
  ],
  [
    'a region that was closed after the batch was filled',
    (a) => {
      const mr = a.pd.regMr(a.pd.allocBuffer(64));
      const batch = one((s) => s.send(1).sge(mr, 0, 1));
      mr.close();
      a.qp.post(batch);
    },
    'closed',
    /no open memory region/,
  ],
  ['no batch', (a) => a.qp.post({} as never), 'type', /SendBatch/],
  ['a batch of receives to the send queue', (a) => a.qp.post(new RecvBatch(1) as never), 'type', /SendBatch/],
  ['no record to poll into', (a) => a.cq.poll(new Float64Array(64) as never), 'type', /Completions/],
  ['a completion that is not there', () => new Completions(4).wrId(0), 'range', /gave 0 completions/],
  ['an empty buffer', (a) => a.pd.regMr(new ArrayBuffer(0)), 'range', /empty/],
  ['what is no buffer', (a) => a.pd.regMr('bytes' as never), 'type', /ArrayBuffer/],
  ['rights that do not exist', (a) => a.pd.regMr(a.pd.allocBuffer(64), 1 << 30), 'range', /access/],
  [
    'remote writes without local ones',
    (a) => a.pd.regMr(a.pd.allocBuffer(64), Access.remoteWrite),
    'refused',
    /local write/,
  ],
  ['a region of Node’s pool', (a) => a.pd.regMr(Buffer.from('small')), 'type', /cannot be moved/],
  ['a WebAssembly memory', (a) => a.pd.regMr(webAssemblyBuffer()), 'type', /cannot be moved/],
  ['a second protection domain', (a) => a.device.allocPd(), 'state', /has a protection domain/],
  ['a buffer without bytes', (a) => a.pd.allocBuffer(0), 'range', /allocBuffer/],
  ['a queue without room', (a) => a.device.createCq(0), 'range', /depth/],
  ['a queue pair without a type', (a) => a.pd.createQp({ cq: a.cq } as never), 'type', /type/],
  ['a queue pair without a queue', (a) => a.pd.createQp({ type: 'rc' } as never), 'type', /cq/],
  ['a queue of another device', (a, b) => a.pd.createQp({ type: 'rc', cq: b.cq }), 'type', /another device/],
  [
    'a queue pair that is too deep',
    (a) => a.pd.createQp({ type: 'rc', cq: a.cq, sendWrMax: a.device.capabilities.maxQpWr + 1 }),
    'range',
    /max_qp_wr/,
  ],
  [
    'an option that does not exist',
    (a) => a.pd.createQp({ type: 'rc', cq: a.cq, depth: 1 } as never),
    'type',
    /depth/,
  ],
  [
    'a send before RTS',
    (a) => {
      using qp = a.pd.createQp({ type: 'rc', cq: a.cq });
      qp.post(one((s) => s.send(1)));
    },
    'state',
    /INIT/,
  ],
  ['a second connection', (a, b) => a.qp.connect(b.qp.address), 'state', /RTS/],
  ['the other side’s call', (a, b) => b.qp.connect(a.qp.address), 'state', /role 'accept'/],
  ['an address that is no bytes', (a) => a.qp.connect('x' as never), 'type', /Uint8Array/],
  [
    'an address of nobody',
    async (a) => {
      using qp = a.pd.createQp({ type: 'rc', cq: a.cq });
      await qp.connect(new Uint8Array(24));
    },
    'refused',
    /connect of queue pair/,
  ],
  [
    'a loop beside a loop',
    async (a) => {
      const first = a.cq.batches();
      const waits = first.next();
      try {
        await a.cq.batches().next();
      } finally {
        a.cq.close();
        await waits;
      }
    },
    'state',
    /another loop/,
  ],
];

describe.each<Fabric>([...fabrics])('on %s', (fabric) => {
  test.each(rows)('%s', async (what, call, expected, text) => {
    using pair = await openPair(fabric, { sendWrMax: 16, recvWrMax: 16 });
    const { a, b } = pair;
    let error: unknown;
    try {
      await call(a, b);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(Error);
    expect((error as Error).message).toMatch(text);
    if (expected === 'type') expect(error).toBeInstanceOf(TypeError);
    else if (expected === 'range') expect(error).toBeInstanceOf(RangeError);
    else {
      expect(error).toBeInstanceOf(VerbsError);
      expect((error as VerbsError).code).toBe(expected);
    }
    if (what === 'a loop beside a loop') return;
    // The pair is unchanged.
    expect([a.qp.sendRoom, a.qp.recvRoom, a.qp.state]).toEqual([16, 16, 'RTS']);
    postReceives(b, 1, 8);
    a.qp.post(new SendBatch(1).send(9, SendFlags.signaled).sge(a.mr, 0, 8));
    expect(await take(b.cq, 1, a.cq)).toMatchObject([{ status: WcStatus.success, byteLength: 8 }]);
  });
});

test('an option of another kind of device is checked, too', () => {
  expect(() => openDevice('sim', { seed: -1 })).toThrow(RangeError);
  expect(() => openDevice('sim', { sed: 1 } as never)).toThrow(/seed/);
  expect(() => openDevice('')).toThrow(TypeError);
});
