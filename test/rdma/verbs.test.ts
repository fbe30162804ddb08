/**
 * Tests `rdma-rpc/verbs` on two RDMA devices: each feature works there, or is refused with its reason.
 */
import {
  Access,
  type Feature,
  openDevice,
  type QpType,
  queryDevice,
  RecvBatch,
  SendBatch,
  SendFlags,
  WcOpcode,
  WcStatus,
} from 'rdma-rpc/verbs';
import { afterAll, describe, expect, test } from 'vitest';
import { type End, openEnd, openPair, take } from '../verbs/ends.ts';
import { asked, featureRows } from '../verbs/feature-table.ts';
import { clientDevice, serverDevice } from './pair.ts';

const qkey = 0x1234;
const headerBytes = 40;
/** ff0e::ffff:239.7.8.10 */
const group = Uint8Array.of(0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 7, 8, 10);
const groupQpn = 0xff_ffff;

const device = openDevice(clientDevice);
afterAll(() => device.close());
const lacks = (feature: Feature): boolean => device.whyNot(feature) !== undefined;

const fill = ({ mr }: End, text: string): number => {
  mr.bytes.set(Buffer.from(text));
  return text.length;
};
const textAt = ({ mr }: End, offset: number, length: number): string =>
  Buffer.from(mr.bytes.subarray(offset, offset + length)).toString();

describe.each<QpType>(['rc', 'uc'])('%s', (type) => {
  test.skipIf(type === 'uc' && lacks('uc'))('sends, writes, and brings numbers', async () => {
    using pair = await openPair(clientDevice, { type }, serverDevice);
    const { a, b } = pair;
    const length = fill(a, 'hello');
    b.qp.postRecv(new RecvBatch(1).recv(10, b.mr, 0, 64));
    a.qp.post(new SendBatch(1).send(1, SendFlags.signaled).sge(a.mr, 0, length));
    expect(await take(b.cq, 1)).toMatchObject([{ wrId: 10, status: WcStatus.success, byteLength: length }]);
    expect(textAt(b, 0, length)).toBe('hello');
    expect(await take(a.cq, 1)).toMatchObject([{ wrId: 1, status: WcStatus.success }]);
    if (lacks('sendWithImm')) return;
    b.qp.postRecv(new RecvBatch(2).recv(11, b.mr, 64, 64).recv(12, b.mr, 128, 64));
    a.qp.post(
      new SendBatch(2)
        .sendWithImm(2, 0xffff_fffe)
        .sge(a.mr, 0, length)
        .writeWithImm(3, b.mr.addr + 1000, b.mr.rkey, 7, SendFlags.signaled)
        .sge(a.mr, 0, length),
    );
    expect(await take(b.cq, 2)).toMatchObject([
      { wrId: 11, opcode: WcOpcode.recv, imm: 0xffff_fffe },
      { wrId: 12, opcode: WcOpcode.recvRdmaWithImm, imm: 7 },
    ]);
    expect(textAt(b, 1000, length)).toBe('hello');
  });
});

test.skipIf(lacks('ud'))('a datagram arrives behind its header', async () => {
  using a = openEnd(clientDevice, 'connect', { type: 'ud', qkey });
  using b = openEnd(serverDevice, 'accept', { type: 'ud', qkey });
  await Promise.all([a.qp.connect(new Uint8Array()), b.qp.accept(new Uint8Array())]);
  b.qp.postRecv(new RecvBatch(2).recv(1, b.mr, 0, 256).recv(2, b.mr, 256, 256));
  using to = a.pd.createAh({ gid: b.device.gid });
  const length = fill(a, 'datagram');
  const batch = new SendBatch(2).send(1).sge(a.mr, 0, length).to(to, b.qp.qpNum, qkey);
  a.qp.post(batch.sendWithImm(2, 99, SendFlags.signaled).sge(a.mr, 0, 0).to(to, b.qp.qpNum, qkey));
  expect(await take(b.cq, 2)).toMatchObject([
    { wrId: 1, status: WcStatus.success, byteLength: headerBytes + length },
    { wrId: 2, status: WcStatus.success, byteLength: headerBytes, imm: 99 },
  ]);
  expect(textAt(b, headerBytes, length)).toBe('datagram');
  expect(await take(a.cq, 1)).toMatchObject([{ wrId: 2, status: WcStatus.success }]);
});

test.skipIf(lacks('multicast'))('a group gets a datagram once each has joined', async () => {
  using a = openEnd(clientDevice, 'connect', { type: 'ud', qkey });
  using b = openEnd(serverDevice, 'accept', { type: 'ud', qkey });
  await Promise.all([a.qp.connect(new Uint8Array()), b.qp.accept(new Uint8Array())]);
  b.qp.postRecv(new RecvBatch(1).recv(5, b.mr, 0, 256));
  b.qp.joinMulticast(group);
  using to = a.pd.createAh({ gid: group });
  a.qp.post(new SendBatch(1).send(1, SendFlags.signaled).sge(a.mr, 0, 8).to(to, groupQpn, qkey));
  expect(await take(b.cq, 1)).toMatchObject([{ wrId: 5, status: WcStatus.success, byteLength: 48 }]);
  b.qp.leaveMulticast(group);
});

test.skipIf(lacks('steps'))('takes single steps', async () => {
  using a = openEnd(clientDevice, 'connect', { steps: true });
  using b = openEnd(serverDevice, 'accept', { steps: true });
  for (const { qp } of [a, b]) qp.toInit();
  a.qp.toRtr(b.qp.address);
  b.qp.toRtr(a.qp.address);
  b.qp.postRecv(new RecvBatch(1).recv(1, b.mr));
  a.qp.toRts();
  a.qp.post(new SendBatch(1).send(2, SendFlags.signaled).sge(a.mr, 0, 8));
  expect(await take(b.cq, 1)).toMatchObject([{ wrId: 1, status: WcStatus.success, byteLength: 8 }]);
});

test.skipIf(lacks('atomics'))('atomics bring the value before', async () => {
  using pair = await openPair(clientDevice, {}, serverDevice);
  const { a, b } = pair;
  using words = b.pd.regMr(b.pd.allocBuffer(64), Access.localWrite | Access.remoteAtomic);
  const [word] = [new BigUint64Array(words.bytes.buffer, words.bytes.byteOffset, 1)];
  word[0] = 5n;
  a.qp.post(new SendBatch(1).fetchAdd(1, words.addr, words.rkey, 3n, SendFlags.signaled).sge(a.mr, 0, 8));
  expect(await take(a.cq, 1)).toMatchObject([{ wrId: 1, status: WcStatus.success }]);
  expect(word[0]).toBe(8n);
  expect(new BigUint64Array(a.mr.bytes.buffer, a.mr.bytes.byteOffset, 1)[0]).toBe(5n);
});

test.skipIf(lacks('windows'))('the rights of a window end with LOCAL_INV', async () => {
  using pair = await openPair(clientDevice, {}, serverDevice);
  const { a, b } = pair;
  using region = b.pd.regMr(b.pd.allocBuffer(4096), Access.localWrite | Access.mwBind);
  using window = b.pd.allocMw();
  b.qp.post(
    new SendBatch(1).bindMw(1, window, region, Access.remoteWrite, {
      offset: 64,
      byteLength: 64,
      flags: SendFlags.signaled,
    }),
  );
  expect(await take(b.cq, 1)).toMatchObject([{ wrId: 1, status: WcStatus.success, opcode: WcOpcode.bindMw }]);
  const write = new SendBatch(1).write(2, region.addr + 64, window.rkey, SendFlags.signaled).sge(a.mr, 0, 8);
  fill(a, 'lastword');
  a.qp.post(write);
  expect(await take(a.cq, 1)).toMatchObject([{ wrId: 2, status: WcStatus.success }]);
  expect(Buffer.from(region.bytes.subarray(64, 72)).toString()).toBe('lastword');
  b.qp.post(new SendBatch(1).localInv(3, window.rkey, SendFlags.signaled));
  expect(await take(b.cq, 1)).toMatchObject([{ wrId: 3, status: WcStatus.success }]);
  a.qp.post(write);
  expect(await take(a.cq, 1)).toMatchObject([{ wrId: 2, status: WcStatus.remAccessErr }]);
});

test('queryDevice has the attributes of the device and its ports', () => {
  const { attributes, ports } = queryDevice(clientDevice);
  expect(Number(attributes.max_qp)).toBeGreaterThan(0);
  expect(ports.map(({ number }) => number)).toContain(1);
});

/** The table of the documents has columns for the kernel's two drivers. */
const column = (['rxe', 'siw'] as const).find((driver) => clientDevice.startsWith(driver));
test.skipIf(column === undefined).each([...asked])('%s is as the table of features says', (feature, key) => {
  const row = featureRows().find((each) => each.feature === feature)!;
  expect(lacks(key) ? 'no' : 'yes', device.whyNot(key)).toBe(row.on[column!]);
});

test.each(['sendWithImm', 'atomics', 'windows', 'uc', 'ud', 'multicast', 'steps', 'reset', 'xrc'] as const)(
  'what is missing of %s has a reason',
  (feature) => {
    const why = device.whyNot(feature);
    if (why !== undefined) expect(why).toMatch(new RegExp(`^${clientDevice} has no .*: .+`));
  },
);
