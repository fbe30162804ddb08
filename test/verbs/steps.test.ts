/**
 * Tests the steps of a queue pair from RESET to RTS, one call each: what it can do in each state, and which
 * calls are refused there. Devices that connect in one step refuse the option with their reason.
 */
import {
  openDevice,
  type QueuePair,
  type QueuePairOptions,
  RecvBatch,
  SendBatch,
  SendFlags,
} from 'rdma-rpc/verbs';
import { describe, expect, test } from 'vitest';
import { fabrics, openEnd, take } from './ends.ts';

const stepwise = { steps: true } as const;
const ends = (options: Partial<QueuePairOptions> = {}) =>
  [
    openEnd('sim', 'connect', { ...stepwise, ...options }),
    openEnd('sim', 'accept', { ...stepwise, ...options }),
  ] as const;

describe.each(['rc', 'uc'] as const)('a %s queue pair', (type) => {
  test('goes from RESET to RTS in three steps, and receives from RTR on', async () => {
    const [a, b] = ends({ type });
    using _a = a;
    using _b = b;
    const send = new SendBatch(1).send(1, SendFlags.signaled).sge(a.mr, 0, 8);
    const receive = new RecvBatch(1).recv(2, b.mr);
    expect([a.qp.state, b.qp.state]).toEqual(['RESET', 'RESET']);
    expect(() => b.qp.postRecv(receive)).toThrow(/in RESET, and receives are posted from INIT on/);

    a.qp.toInit();
    b.qp.toInit();
    expect(b.qp.state).toBe('INIT');
    b.qp.postRecv(receive);
    expect(() => a.qp.post(send)).toThrow(/in INIT, and sends are posted in RTS/);

    a.qp.toRtr(b.qp.address);
    b.qp.toRtr(a.qp.address);
    expect([a.qp.state, b.qp.state]).toEqual(['RTR', 'RTR']);
    expect(() => a.qp.post(send)).toThrow(/in RTR, and sends are posted in RTS/);

    a.qp.toRts();
    a.qp.post(send);
    expect(await take(b.cq, 1, a.cq)).toMatchObject([{ wrId: 2, status: 0, byteLength: 8 }]);
    expect(b.qp.state).toBe('RTR');
    expect(() => b.qp.post(new SendBatch(1).send(3))).toThrow(/in RTR/);
    b.qp.toRts();
    expect(b.qp.state).toBe('RTS');
  });
});

test('a UD queue pair takes the steps without an address', async () => {
  using a = openEnd('sim', 'connect', { ...stepwise, type: 'ud', qkey: 7 });
  using b = openEnd('sim', 'accept', { ...stepwise, type: 'ud', qkey: 7 });
  for (const { qp } of [a, b]) qp.toInit();
  for (const { qp } of [a, b]) qp.toRtr();
  b.qp.postRecv(new RecvBatch(1).recv(2, b.mr));
  a.qp.toRts();
  using to = a.pd.createAh({ gid: b.device.gid });
  a.qp.post(new SendBatch(1).send(1).to(to, b.qp.qpNum, 7));
  expect(await take(b.cq, 1, a.cq)).toMatchObject([{ wrId: 2, status: 0, byteLength: 40 }]);
});

test('a stepwise queue pair connects to an ordinary one', async () => {
  using a = openEnd('sim', 'connect', stepwise);
  using b = openEnd('sim', 'accept');
  a.qp.toInit();
  const accepted = b.qp.accept(a.qp.address);
  a.qp.toRtr(b.qp.address);
  a.qp.toRts();
  await accepted;
  expect([a.qp.state, b.qp.state]).toEqual(['RTS', 'RTS']);
});

const steps: Record<'toInit' | 'toRtr' | 'toRts', (qp: QueuePair, address: Uint8Array) => void> = {
  toInit: (qp) => qp.toInit(),
  toRtr: (qp, address) => qp.toRtr(address),
  toRts: (qp) => qp.toRts(),
};
const allowed = { toInit: 'RESET', toRtr: 'INIT', toRts: 'RTR' } as const;
const ways = {
  RESET: [],
  INIT: ['toInit'],
  RTR: ['toInit', 'toRtr'],
  RTS: ['toInit', 'toRtr', 'toRts'],
} as const;

test.each(
  (Object.keys(ways) as (keyof typeof ways)[]).flatMap((state) =>
    (Object.keys(steps) as (keyof typeof steps)[]).map((step) => [step, state] as const),
  ),
)('%s in %s', (step, state) => {
  const [a, b] = ends();
  using _a = a;
  using _b = b;
  for (const each of ways[state]) steps[each](a.qp, b.qp.address);
  expect(a.qp.state).toBe(state);
  const call = () => steps[step](a.qp, b.qp.address);
  if (allowed[step] === state) expect(call).not.toThrow();
  else
    expect(call).toThrow(expect.objectContaining({ code: 'state', message: expect.stringContaining(state) }));
});

test('a wrong address leads to ERR, and a value that is not an address throws a TypeError', () => {
  const [a, b] = ends();
  using _a = a;
  using _b = b;
  a.qp.toInit();
  expect(() => a.qp.toRtr('peer' as unknown as Uint8Array)).toThrow(TypeError);
  expect(() => a.qp.toRtr(b.qp.address.subarray(1))).toThrow(expect.objectContaining({ code: 'refused' }));
  expect(a.qp.state).toBe('ERR');
});

test('connect and single steps do not mix', async () => {
  const [a, b] = ends();
  using _a = a;
  using _b = b;
  using plain = openEnd('sim', 'connect');
  await expect(a.qp.connect(b.qp.address)).rejects.toThrow(/call toInit, toRtr and toRts/);
  expect(() => plain.qp.toInit()).toThrow(/make it with the option steps/);
});

test.each(fabrics.filter((fabric) => fabric !== 'sim'))(
  '%s refuses single steps with its reason',
  (fabric) => {
    using device = openDevice(fabric);
    using pd = device.allocPd();
    using cq = device.createCq();
    const why = device.whyNot('steps');
    expect(why).toMatch(/one step/);
    expect(() => pd.createQp({ type: 'rc', cq, steps: true })).toThrow(
      expect.objectContaining({ code: 'unsupported', message: expect.stringContaining(why!) }),
    );
  },
);
