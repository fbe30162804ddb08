/**
 * Tests a call that ends while `authorize` is still deciding about it. Its handler has not begun and never
 * begins. The server tells the client so wherever it answers a cancellation, which it does for calls that
 * expose memory. A client waits only 10 ms for this answer, and reports 'maybe' when it has not come on a
 * busy machine. Tests with virtual clocks and of the loopback check the answer itself.
 */
import {
  type Channel,
  createChannel,
  createClient,
  createInProcessChannel,
  createServer,
  type RpcError,
  type Server,
  Status,
} from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { caught, until } from '../outcomes.ts';
import { AnnotatedDefinition } from '../runtime/gen/annotated.rdma.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const large = new Uint8Array(300_000).fill(7);
const small = large.subarray(0, 10);

const ways = ['in-process', 'shm', 'tcp'] as const;

async function open(way: (typeof ways)[number]) {
  const decisions: ((allowed: boolean) => void)[] = [];
  const bed = { ran: 0, aborted: 0 };
  const authorize = () => new Promise<boolean>((resolve) => decisions.push(resolve));
  const add = (server: Pick<Server, 'add'>) =>
    server.add(EchoDefinition, {
      echo: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          ++bed.ran;
          signal.addEventListener('abort', () => {
            ++bed.aborted;
            reject(signal.reason);
          });
        }),
      fetch: async () => ({}),
    });
  let channel: Channel;
  if (way === 'in-process') channel = createInProcessChannel((server) => add(server), { authorize });
  else {
    const server = createServer({ authorize, fabric: way });
    closing.push(() => server.shutdown({ graceMs: 0 }));
    add(server);
    channel = createChannel(await server.listen('127.0.0.1:0'), { fabric: way });
  }
  closing.push(() => channel.close());
  return { client: createClient(EchoDefinition, channel), decisions, bed };
}

describe.each(ways)('%s', (way) => {
  test.each([
    ['is cancelled', Status.CANCELLED],
    ['reaches its deadline', Status.DEADLINE_EXCEEDED],
  ] as const)('a large call that %s has not run, and does not run later', async (_, code) => {
    const { client, decisions, bed } = await open(way);
    const hurry = new AbortController();
    const limit = code === Status.CANCELLED ? { signal: hurry.signal } : { timeoutMs: 500 };
    const call = caught(client.echo({ payload: large }, limit));
    await until(() => decisions.length === 1);
    hurry.abort();
    const error = await call;
    expect(error.code).toBe(code);
    expect(['no', 'maybe']).toContain(error.processed);
    decisions[0]!(true);
    // A further call shows that the server has handled the decision.
    const next = client.fetch({});
    await until(() => decisions.length === 2);
    decisions[1]!(true);
    await next;
    expect(bed).toEqual({ ran: 0, aborted: 0 });
  });

  test('a large call that is cancelled after the decision has run', async () => {
    const { client, decisions, bed } = await open(way);
    const hurry = new AbortController();
    const call = caught(client.echo({ payload: large }, { signal: hurry.signal }));
    await until(() => decisions.length === 1);
    decisions[0]!(true);
    await until(() => bed.ran === 1);
    hurry.abort();
    const error = await call;
    expect(error.code).toBe(Status.CANCELLED);
    expect(['yes', 'maybe']).toContain(error.processed);
    await until(() => bed.aborted === 1);
  });

  test('a decision and a cancellation at the same moment: the handler runs only for a caller that knows', async () => {
    const { client, decisions, bed } = await open(way);
    const results: RpcError[] = [];
    for (let round = 0; round < 20; ++round) {
      const hurry = new AbortController();
      const call = caught(client.echo({ payload: large }, { signal: hurry.signal }));
      await until(() => decisions.length === round + 1);
      if (round % 2 === 0) hurry.abort();
      decisions[round]!(true);
      hurry.abort();
      results.push(await call);
    }
    // A further call shows that the server has handled all decisions.
    const next = client.fetch({});
    await until(() => decisions.length === 21);
    decisions[20]!(true);
    await next;
    await until(() => bed.ran === bed.aborted);
    expect(bed.ran).toBeLessThanOrEqual(results.filter(({ processed }) => processed !== 'no').length);
  });

  test('the server answers no cancellation of a small call, so its client cannot know', async () => {
    const { client, decisions, bed } = await open(way);
    const hurry = new AbortController();
    const call = caught(client.echo({ payload: small }, { signal: hurry.signal }));
    await until(() => decisions.length === 1);
    hurry.abort();
    expect(await call).toMatchObject({ code: Status.CANCELLED, processed: 'maybe' });
    expect(bed.ran).toBe(0);
  });
});

test('the handler of a one-way method runs after the decision, though the call was answered before', async () => {
  const ran: number[] = [];
  let allow: (allowed: boolean) => void = () => undefined;
  const channel = createInProcessChannel(
    (server) =>
      server.add(AnnotatedDefinition, {
        forget: async ({ bytes }: { bytes: number }) => void ran.push(bytes),
      } as never),
    {
      authorize: () =>
        new Promise<boolean>((resolve) => {
          allow = resolve;
        }),
    },
  );
  closing.push(() => channel.close());
  await createClient(AnnotatedDefinition, channel).forget({ bytes: 7 });
  allow(true);
  await until(() => ran.length === 1);
  expect(ran).toEqual([7]);
});
