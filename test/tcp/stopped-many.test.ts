/**
 * Tests many clients that are stopped with a large answer each. Together they hold all the memory for
 * answers.
 */
import { fork } from 'node:child_process';
import { configure, createChannel, createClient, createServer, leaseOf, stats } from 'rdma-rpc';
import { afterEach, expect, test } from 'vitest';
import { until } from '../outcomes.ts';
import { EchoDefinition, type EchoMessageInit } from '../runtime/gen/echo.rdma.ts';
import { compiled } from '../runtime/process/processes.ts';

const MiB = 1 << 20;
const clients = 7;
/**
 * Number of answers of each client. All of them except one fit together, and leave the reserve for clients
 * that hold nothing.
 */
const answers = 2;
const answerBytes = 4 * MiB - 65_536;
configure({ arenaBytes: 64 * MiB });

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

test('delay the answers to others by some seconds, but not until these calls fail', async () => {
  let fetches = 0;
  let go: () => void = () => undefined;
  const goes = new Promise<void>((resolve) => {
    go = resolve;
  });
  const server = createServer({ fabric: 'tcp', log: () => undefined }).add(EchoDefinition, {
    echo: () => ({}),
    fetch: async ({ number }): Promise<EchoMessageInit> => {
      ++fetches;
      await goes;
      return { payload: new Uint8Array(number) };
    },
  });
  const address = await server.listen('127.0.0.1:0');
  closing.push(() => server.shutdown({ graceMs: 0 }));
  const channel = createChannel(address, { fabric: 'tcp' });
  closing.push(() => channel.close());
  const honest = createClient(EchoDefinition, channel);
  const children = Array.from({ length: clients }, () =>
    fork(compiled('stopped-client', 'tcp'), [address, 'answer', String(answers), String(answerBytes), '0'], {
      silent: true,
    }),
  );
  for (const child of children) closing.push(() => child.kill('SIGKILL'));
  await until(() => fetches === clients * answers);
  for (const child of children) child.kill('SIGSTOP');
  go();
  await until(() => stats().arenaLeasedBytes >= (clients * answers - 1) * answerBytes);
  for (let i = 0; i < 8; ++i) {
    // The limit is below 30 s, because after 30 s the stopped clients' sessions end and free their memory.
    const reply = await honest.fetch({ number: MiB }, { timeoutMs: 9000 });
    expect(reply.payload.byteLength).toBe(MiB);
    leaseOf(reply)?.release();
  }
});
