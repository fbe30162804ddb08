/**
 * Clients are stopped in the middle of large messages, as a debugger or a suspended machine stops them. Such
 * clients lose their own calls, and use their share of memory for a limited time. No other client is
 * affected.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createChannel, createClient, createServer, leaseOf, type ServerOptions, stats } from 'rdma-rpc';
import { afterEach, expect, test } from 'vitest';
import { until } from '../outcomes.ts';
import { EchoDefinition, type EchoMessageInit } from '../runtime/gen/echo.rdma.ts';
import { compiled } from '../runtime/process/processes.ts';

const MiB = 1 << 20;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface Held {
  /** Number of requests that handlers have got. With `pause`, the handlers wait for it. */
  fetches: number;
  go: () => void;
}

async function serve(options: ServerOptions = {}) {
  let go: () => void = () => undefined;
  const goes = new Promise<void>((resolve) => {
    go = resolve;
  });
  const held: Held = { fetches: 0, go };
  const server = createServer({ fabric: 'tcp', log: () => undefined, ...options }).add(EchoDefinition, {
    echo: (request) => {
      const number = request.payload.byteLength;
      leaseOf(request)?.release();
      return { number };
    },
    fetch: async ({ number }): Promise<EchoMessageInit> => {
      ++held.fetches;
      await goes;
      return { payload: new Uint8Array(number) };
    },
  });
  const address = await server.listen('127.0.0.1:0');
  closing.push(() => server.shutdown({ graceMs: 0 }));
  const channel = createChannel(address, { fabric: 'tcp' });
  closing.push(() => channel.close());
  const client = createClient(EchoDefinition, channel);
  /**
   * The lease is released at once, because the garbage collector would release it in the middle of the count.
   */
  const fetched = async (number: number): Promise<number> => {
    const reply = await client.fetch({ number });
    const { byteLength } = reply.payload;
    leaseOf(reply)?.release();
    return byteLength;
  };
  return { address, held, client, fetched };
}

type Kind = 'request' | 'answer';
function start(address: string, kind: Kind, count: number, bytes: number, timeoutMs: number): ChildProcess {
  const args = [address, kind, count, bytes, timeoutMs].map(String);
  const child = fork(compiled('stopped-client', 'tcp'), args, { silent: true });
  closing.push(() => child.kill('SIGKILL'));
  return child;
}

/** The state is the third word, behind the name in parentheses. */
const isStopped = ({ pid }: ChildProcess): boolean =>
  readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.startsWith('T') === true;

test('six clients that are stopped in the middle of their requests do not keep others from sending large ones', async () => {
  const { address, client } = await serve();
  await client.echo({});
  for (let i = 0; i < 6; ++i) {
    const child = start(address, 'request', 1, 12 * MiB, 0);
    await until(() => isStopped(child));
    // None of the others ends before 30 s.
    const payload = new Uint8Array(4 * MiB);
    expect(await client.echo({ payload }, { timeoutMs: 20_000 })).toMatchObject({ number: 4 * MiB });
  }
});

test('the memory of a request that is announced and not sent is released at its deadline', async () => {
  const { address, client } = await serve();
  const before = stats().arenaLeasedBytes;
  const child = start(address, 'request', 1, 60 * MiB, 2000);
  await until(() => isStopped(child));
  await until(() => stats().arenaLeasedBytes === before);
  expect(child.exitCode).toBeNull();
  expect(await client.echo({ payload: new Uint8Array(60 * MiB) })).toMatchObject({ number: 60 * MiB });
});

test('the memory of such a request is released at the deadline of the server when that comes first', async () => {
  const { address } = await serve({ timeoutMaxMs: 2000 });
  const before = stats().arenaLeasedBytes;
  const child = start(address, 'request', 1, 60 * MiB, 0);
  await until(() => isStopped(child));
  await until(() => stats().arenaLeasedBytes === before);
});

test('responses for which the client grants no memory release their memory at their deadline', async () => {
  const { address, held, fetched } = await serve();
  const child = start(address, 'answer', 4, 8 * MiB, 3000);
  await until(() => held.fetches === 4);
  child.kill('SIGSTOP');
  await until(() => isStopped(child));
  const before = stats().arenaLeasedBytes;
  held.go();
  await until(() => stats().arenaLeasedBytes >= before + 4 * 8 * MiB);
  await until(() => stats().arenaLeasedBytes === before);
  expect(await fetched(8 * MiB)).toBe(8 * MiB);
});

test('answers of a session hold no more memory than its quota, and other sessions continue', async () => {
  const { address, held, fetched } = await serve({ quotas: { arenaBytesMax: 2 * MiB } });
  // Two of these fit, in blocks of 1 MiB each.
  const child = start(address, 'answer', 8, 900 << 10, 3000);
  await until(() => held.fetches === 8);
  child.kill('SIGSTOP');
  await until(() => isStopped(child));
  const before = stats().arenaLeasedBytes;
  held.go();
  await until(() => stats().arenaLeasedBytes > before);
  let most = 0;
  await until(() => {
    most = Math.max(most, stats().arenaLeasedBytes - before);
    return stats().arenaLeasedBytes === before;
  });
  expect(most).toBe(2 * MiB);
  expect(await fetched(3 * MiB)).toBe(3 * MiB);
});
