/**
 * Tests memory windows: rights that begin with a bind, and end with an invalidation, a close, or the queue
 * pair.
 */
import {
  Access,
  Completions,
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
import { type End, type Fabric, fabrics, openPair, take } from './ends.ts';

const { signaled } = SendFlags;
const rights = Access.localWrite | Access.mwBind;

/** Sets up `b` with memory that has no rights for peers, and binds a window to 100 bytes at offset 200. */
async function bound(fabric: Fabric, access: number) {
  const pair = await openPair(fabric);
  const { a, b } = pair;
  const mr = b.pd.regMr(b.pd.allocBuffer(4096), rights);
  const mw = b.pd.allocMw();
  expect(mw.rkey).toBe(0);
  b.qp.post(new SendBatch(1).bindMw(1, mw, mr, access, { offset: 200, byteLength: 100, flags: signaled }));
  expect(mw.rkey).not.toBe(0);
  expect(await take(b.cq, 1, a.cq)).toMatchObject([{ wrId: 1, status: 0, opcode: WcOpcode.bindMw }]);
  return { a, b, mr, mw, close: () => pair[Symbol.dispose]() };
}

const read = async (a: End, b: End, addr: number, rkey: number, bytes: number): Promise<number> => {
  a.qp.post(new SendBatch(1).read(9, addr, rkey, signaled).sge(a.mr, 0, bytes));
  return (await take(a.cq, 1, b.cq))[0]!.status;
};

describe.each<Fabric>(
  fabrics.filter((name) => {
    using device = openDevice(name);
    return device.whyNot('windows') === undefined;
  }),
)('on %s', (fabric) => {
  test('the peer can read the range of the window, and no other bytes', async () => {
    const { a, b, mr, mw, close } = await bound(fabric, Access.remoteRead);
    mr.bytes.fill(7, 200, 300);
    expect(await read(a, b, mr.addr + 200, mw.rkey, 100)).toBe(WcStatus.success);
    expect([...a.mr.bytes.subarray(0, 100)]).toEqual(Array.from({ length: 100 }, () => 7));
    expect(await read(a, b, mr.addr + 201, mw.rkey, 100)).toBe(WcStatus.remAccessErr);
    close();
  });

  test('a window for READs takes no WRITE', async () => {
    const { a, b, mr, mw, close } = await bound(fabric, Access.remoteRead);
    a.qp.post(new SendBatch(1).write(9, mr.addr + 200, mw.rkey, signaled).sge(a.mr, 0, 4));
    expect(await take(a.cq, 1, b.cq)).toMatchObject([{ status: WcStatus.remAccessErr }]);
    close();
  });

  test('an invalidated key no longer works, and the next bind has another key', async () => {
    const { a, b, mr, mw, close } = await bound(fabric, Access.remoteRead | Access.remoteWrite);
    const first = mw.rkey;
    b.qp.post(new SendBatch(1).localInv(2, first, signaled));
    expect(await take(b.cq, 1, a.cq)).toMatchObject([{ wrId: 2, status: 0, opcode: WcOpcode.localInv }]);
    b.qp.post(new SendBatch(1).bindMw(3, mw, mr, Access.remoteRead, { flags: signaled }));
    expect(await take(b.cq, 1, a.cq)).toMatchObject([{ wrId: 3, status: 0 }]);
    expect(mw.rkey).not.toBe(first);
    expect(await read(a, b, mr.addr, mw.rkey, 64)).toBe(WcStatus.success);
    expect(await read(a, b, mr.addr + 200, first, 4)).toBe(WcStatus.remAccessErr);
    close();
  });

  test('a SEND of the peer invalidates the key that it names', async () => {
    const { a, b, mr, mw, close } = await bound(fabric, Access.remoteRead);
    const key = mw.rkey;
    b.qp.postRecv(new RecvBatch(1).recv(5, b.mr));
    a.qp.post(new SendBatch(1).sendWithInv(4, key).sge(a.mr, 0, 4));
    const done = new Completions(1);
    while (b.cq.poll(done) === 0) {
      a.cq.poll(new Completions(1));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect([done.wrId(0), done.invalidatedRkey(0), done.flags(0)]).toEqual([5, key, WcFlags.withInv]);
    expect(await read(a, b, mr.addr + 200, key, 4)).toBe(WcStatus.remAccessErr);
    close();
  });

  test('a closed region stays until the window that is bound to it is closed', async () => {
    const { a, b, mr, mw, close } = await bound(fabric, Access.remoteRead);
    const [addr, key] = [mr.addr, mw.rkey];
    mr.close();
    expect(await read(a, b, addr + 200, key, 4)).toBe(WcStatus.success);
    mw.close();
    expect(() => mw.rkey).toThrow(/memory window \d+ of \w+ is closed/);
    expect(await read(a, b, addr + 200, key, 4)).toBe(WcStatus.remAccessErr);
    close();
  });

  test('wrong binds are refused without reaching the device', async () => {
    const { b, mr, mw, close } = await bound(fabric, Access.remoteRead);
    const { remoteRead, remoteWrite, localWrite } = Access;
    using closed = b.pd.allocMw();
    using plain = b.pd.regMr(b.pd.allocBuffer(64), localWrite);
    using readOnly = b.pd.regMr(b.pd.allocBuffer(64), Access.mwBind);
    const batch = new SendBatch(1);
    const wrong: [() => SendBatch, RegExp][] = [
      [() => batch.clear().bindMw(1, mw, plain, remoteRead), /without Access.mwBind/],
      [() => batch.clear().bindMw(1, mw, readOnly, remoteWrite), /without Access.localWrite/],
      [() => batch.clear().bindMw(1, mw, mr, localWrite), /rights for peers only/],
      [() => batch.clear().bindMw(1, mw, mr, remoteRead, { byteLength: 0 }), /the window is empty/],
      [() => batch.clear().bindMw(1, mw, mr, remoteRead, { offset: 4000, byteLength: 97 }), /do not lie in/],
      [
        () => batch.clear().bindMw(1, mw, mr, remoteRead, { flags: SendFlags.inline }),
        /nothing is sent by it/,
      ],
      [() => batch.clear().bindMw(1, mw, mr, remoteRead).sge(mr, 0, 4), /nothing is sent by it/],
      [() => batch.clear().bindMw(1, mw, mr, -1), /no whole number/],
      [() => batch.clear().localInv(1, 0), /no key of a window/],
      [() => batch.clear().localInv(1, 2 ** 32), /no key of a window/],
      [() => batch.clear().sendWithInv(1, Number.NaN), /no key of a window/],
    ];
    for (const [make, why] of wrong) expect(() => b.qp.post(make()), String(why)).toThrow(why);
    const late = batch.clear().bindMw(1, closed, mr, remoteRead);
    closed.close();
    expect(() => b.qp.post(late)).toThrow(/the memory window is closed/);
    close();
  });
});

test('a device without windows gives the reason', async () => {
  for (const fabric of fabrics) {
    using device = openDevice(fabric);
    using pd = device.allocPd();
    const why = device.whyNot('windows');
    if (why !== undefined) expect(() => pd.allocMw()).toThrow(VerbsError);
    else pd.allocMw().close();
  }
});

test.each(['uc', 'ud'] as const)('windows exist for rc, not for %s', async (type) => {
  using device = openDevice('sim');
  using pd = device.allocPd();
  using cq = device.createCq();
  using qp = pd.createQp({ type, cq });
  using peer = pd.createQp({ type, cq, role: 'accept' });
  if (type === 'ud') await qp.connect(new Uint8Array());
  else await Promise.all([qp.connect(peer.address), peer.accept(qp.address)]);
  using mr = pd.regMr(pd.allocBuffer(64), rights);
  using mw = pd.allocMw();
  for (const batch of [
    new SendBatch(1).bindMw(1, mw, mr, Access.remoteRead),
    new SendBatch(1).localInv(1, 5),
  ])
    expect(() => qp.post(batch)).toThrow(expect.objectContaining({ code: 'unsupported' }));
});
