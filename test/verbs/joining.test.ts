/**
 * Tests attempts to connect that this side ends, and completions that arrive while a queue pair connects. An
 * attempt waits on the completion queue, which does not report that its queue pair was closed.
 */
import { type CompletionQueue, Completions, RecvBatch, SendBatch, SendFlags } from 'rdma-rpc/verbs';
import { describe, expect, test } from 'vitest';
import { comes, turn } from '../outcomes.ts';
import { type End, openEnd, openPair, take } from './ends.ts';

type Ending = (end: End) => void;
const endings: [string, Ending, string][] = [
  ['the queue pair is closed', ({ qp }) => qp.close(), 'closed'],
  ['the queue pair is moved to ERR', ({ qp }) => qp.toError(), 'refused'],
  ['the completion queue is closed', ({ cq }) => cq.close(), 'closed'],
];

// On the other software devices, queue pairs connect at once.
const fabric = 'tcp';

describe('an attempt to connect', () => {
  test.each(endings)('ends when %s', async (_, harm, code) => {
    using end = openEnd(fabric, 'accept');
    using peer = openEnd(fabric, 'connect');
    const joined = end.qp.accept(peer.qp.address);
    joined.catch(() => undefined);
    await turn();
    expect(end.qp.state).toBe('RTR');
    harm(end);
    await expect(comes(joined, 'the end of the attempt')).rejects.toMatchObject({ code });
  });

  test('fails without the completion queue', async () => {
    using end = openEnd(fabric, 'accept');
    using peer = openEnd(fabric, 'connect');
    end.cq.close();
    const joined = end.qp.accept(peer.qp.address);
    await expect(comes(joined, 'the end of the attempt')).rejects.toMatchObject({ code: 'closed' });
  });
});

test('ready() finds a message that arrived while another queue pair was connecting', async () => {
  using pair = await openPair(fabric);
  const { a, b } = pair;
  using peer = openEnd(fabric, 'connect');
  using late = b.pd.createQp({ type: 'rc', cq: b.cq, role: 'accept' });
  b.qp.postRecv(new RecvBatch(1).recv(5, b.mr));
  const joining = late.accept(peer.qp.address);
  joining.catch(() => undefined);
  a.qp.post(new SendBatch(1).send(1, SendFlags.signaled).sge(a.mr, 0, 4));
  await take(a.cq, 1);
  await comes(b.cq.ready(), 'the message');
  expect(b.cq.poll(new Completions(4))).toBe(1);
});

test('a queue that was armed twice loses no waiting caller', async () => {
  using pair = await openPair('sim');
  const { a, b } = pair;
  b.qp.postRecv(new RecvBatch(1).recv(1, b.mr));
  const solicited = b.cq.ready(true);
  a.qp.post(new SendBatch(1).send(1, SendFlags.solicited).sge(a.mr, 0, 4));
  // The completion is there, so this call ends by itself, in addition to the event of the device.
  const other = b.cq.ready();
  await Promise.all([solicited, other]);
  expect(b.cq.poll(new Completions(4))).toBe(1);
  const waiters = [endOf(b.cq)];
  for (let i = 0; i < 5; ++i) await turn();
  waiters.push(endOf(b.cq));
  b.cq.close();
  expect(await comes(Promise.all(waiters), 'the end of the waiting callers')).toEqual(['closed', 'closed']);
});

const endOf = (cq: CompletionQueue): Promise<string> =>
  cq.ready().then(
    () => 'ready',
    ({ code }: { code: string }) => code,
  );
