/** Tests calls from server to client between two processes, of which one is stopped or killed. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createChannel, createServer, RpcError, type ServerOptions, Status } from 'rdma-rpc';
import { type Peers, peersOf, serveReverse } from 'rdma-rpc/reverse';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type EchoLog, echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { compiled } from '../runtime/process/processes.ts';
import { caught } from '../stream/stream-world.ts';

let closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.reverse()) await close();
  closing = [];
});

async function other(...args: string[]): Promise<{ child: ChildProcess; said: string }> {
  const child = fork(compiled('other-end', 'reverse'), args);
  closing.push(() => child.kill('SIGKILL'));
  const [said] = (await once(child, 'message')) as [string];
  return { child, said };
}

const fabrics: readonly NonNullable<ServerOptions['fabric']>[] = ['shm', 'tcp'];

describe.each(fabrics)('over %s', (fabric) => {
  test('when the server is killed, handlers are notified, and the client serves the next one', async () => {
    const { child, said: address } = await other('server', '127.0.0.1:0', String(fabric));
    const channel = createChannel(address, { fabric });
    closing.push(() => channel.close());
    const log: EchoLog = { started: 0, aborted: [] };
    const reverse = serveReverse(channel).add(EchoDefinition, echoHandlers(log));
    closing.push(() => reverse.close());
    await reverse.ready;
    await vi.waitFor(() => expect(log.started).toBe(20), { timeout: 10_000 });
    child.kill('SIGKILL');
    await vi.waitFor(() => expect(log.aborted).toEqual(Array.from({ length: 20 }, () => Status.CANCELLED)), {
      timeout: 10_000,
    });
    const server = createServer({ fabric });
    const peers = peersOf(server);
    closing.push(() => server.shutdown({ graceMs: 0 }));
    await server.listen(address);
    await vi.waitFor(() => expect(peers.all).toHaveLength(1), { timeout: 10_000 });
    expect(await peers.client(EchoDefinition, peers.all[0]!).echo({ number: 4 })).toMatchObject({
      number: 4,
    });
  });

  async function twoClients(): Promise<{ peers: Peers; child: ChildProcess }> {
    const server = createServer({ fabric });
    const peers = peersOf(server);
    closing.push(() => server.shutdown({ graceMs: 0 }));
    const address = await server.listen('127.0.0.1:0');
    const { child } = await other('client', address, String(fabric));
    await other('client', address, String(fabric));
    await vi.waitFor(() => expect(peers.all).toHaveLength(2));
    return { peers, child };
  }

  test('a stopped client costs only its own calls, and continues later', async () => {
    const { peers, child } = await twoClients();
    const [stopped, well] = peers.all.map((peer) => peers.client(EchoDefinition, peer));
    child.kill('SIGSTOP');
    const payload = new Uint8Array(1_000_000).fill(3);
    const late = Array.from({ length: 10 }, () =>
      caught(() => stopped!.echo({ payload }, { timeoutMs: 300 })),
    );
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, number) => well!.echo({ number, payload })),
    );
    expect(answers.map(({ number }) => number)).toEqual(answers.map((_, i) => i));
    for (const error of await Promise.all(late)) expect(error.code).toBe(Status.DEADLINE_EXCEEDED);
    child.kill('SIGCONT');
    expect((await stopped!.echo({ payload, number: 9 }, { timeoutMs: 30_000 })).number).toBe(9);
  });

  test('when a client is killed, its calls fail, and nothing of it is left', async () => {
    const { peers, child } = await twoClients();
    const gone = vi.fn();
    peers.on('gone', gone);
    const [first, second] = peers.all;
    const error = caught(() => peers.client(EchoDefinition, first!).behave({ text: 'hang' }));
    await peers.client(EchoDefinition, first!).echo({});
    child.kill('SIGKILL');
    expect(await error).toBeInstanceOf(RpcError);
    expect(await error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
    await vi.waitFor(() => expect(gone).toHaveBeenCalledWith(first));
    expect(peers.all).toEqual([second]);
  });
});
