/**
 * Tests how streams between processes end when one process is killed, restarted or drained, and how a slow
 * reader affects other streams.
 */
import { fork } from 'node:child_process';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Channel, createChannel, createClient, leaseOf, type RpcError, Status, stats } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { compiled, exited, nextMessage } from '../runtime/process/processes.ts';
import { InteropDefinition, type OutputRequestInit } from './gen/interop.rdma.ts';
import { InteropServer } from './peer.ts';
import { pattern } from './sizes.ts';
import { failure, until } from './unary-cases.ts';

const fabrics = ['shm', 'tcp'] as const;
const path = join(tmpdir(), `rdma-rpc-endings-${process.pid}.sock`);
/** The address at which the servers of a test listen, one after the other. */
let address = '';
let fabric: (typeof fabrics)[number] = 'shm';
const open: { end(): Promise<unknown> }[] = [];

async function serve(): Promise<InteropServer> {
  const server = await InteropServer.start(address, { fabric });
  address = server.address;
  open.push({ end: async () => server.child.connected && server.kill() });
  return server;
}

function reach() {
  const channel: Channel = createChannel(address, { fabric });
  open.push({ end: () => channel.close() });
  return { channel, client: createClient(InteropDefinition, channel) };
}
type Client = ReturnType<typeof reach>['client'];

/** Runs the next test over this fabric. */
function over(given: typeof fabric): void {
  fabric = given;
  address = given === 'shm' ? `unix:${path}` : '127.0.0.1:0';
}

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.end();
  rmSync(path, { force: true });
});

const long = (size: number, count = 1000): OutputRequestInit => ({
  responseParameters: Array.from({ length: count }, () => ({ size })),
});
const never: OutputRequestInit = { responseParameters: [{ size: 1, intervalUs: 600_000_000 }] };

/** Returns a stream of requests that continues until its reader stops; `taken` counts the requests. */
function endless<T>(message: T) {
  const state = { taken: 0, left: false };
  async function* all(): AsyncGenerator<T> {
    try {
      for (;;) {
        ++state.taken;
        yield message;
      }
    } finally {
      state.left = true;
    }
  }
  return { state, requests: all() };
}

/** Reads a stream that must fail. `begun` resolves with the first message of the stream. */
function reading(stream: AsyncIterable<object>) {
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const all = async (): Promise<void> => {
    for await (const received of stream) {
      leaseOf(received)?.release();
      begin();
    }
  };
  return { begun, end: failure(all()) };
}

/** Opens a stream of every kind, and returns the errors with which they end. */
async function openStreams(client: Client, size: number): Promise<{ ends: Promise<RpcError>[] }> {
  const message = { payload: { body: pattern(size, 1), seed: 1 } };
  const responseParameters = [{ size }, ...never.responseParameters!];
  const download = reading(client.streamingOutputCall({ responseParameters }));
  const chat = reading(
    client.fullDuplexCall(endless({ ...message, responseParameters: [{ size }] }).requests),
  );
  const upload = failure(client.streamingInputCall(endless(message).requests));
  await Promise.all([download.begun, chat.begun, client.emptyCall({})]);
  return { ends: [download.end, chat.end, upload] };
}

describe.each(fabrics.flatMap((name) => [10, 100_000].map((size) => [name, size] as const)))(
  'over %s, streams with messages of %i bytes',
  (name, size) => {
    beforeEach(() => over(name));

    test('a server that is killed ends all calls, and the next server answers', async () => {
      const server = await serve();
      const { client } = reach();
      const { ends } = await openStreams(client, size);
      await server.kill();
      for (const end of ends) {
        const error = await end;
        expect(error.code).toBe(Status.UNAVAILABLE);
        expect(error.processed).not.toBe('no');
      }
      const next = await serve();
      expect((await client.streamingInputCall([{}, {}])).messages).toBe(2);
      expect((await next.report()).log).toMatchObject({ started: 1, left: 1 });
      expect(stats(fabric)).toMatchObject({ protocolErrors: 0, sessions: 1 });
    });

    test('a client that is killed ends its handlers, and nothing of it is left at the server', async () => {
      const server = await serve();
      const { client } = reach();
      await client.emptyCall({});
      const cycle = async (): Promise<Record<string, number>> => {
        const { left } = (await server.report()).log;
        const child = fork(compiled('client', 'interop'), [address, String(size), fabric]);
        await nextMessage(child);
        expect((await server.report()).sessions).toBe(2);
        child.kill('SIGKILL');
        await exited(child);
        await until(async () => (await server.report()).sessions === 1);
        await until(async () => (await server.report()).log.left === left + 3);
        const { queuePairs, memoryWindows, openFds } = (await server.report()).stats;
        return { queuePairs: queuePairs!, memoryWindows: memoryWindows!, openFds: openFds! };
      };
      // The first cycle makes the chunks of the arena, which stay.
      const before = await cycle();
      expect(await cycle()).toEqual(before);
      await client.emptyCall({});
    });

    test('a server that drains lets the calls end', async () => {
      const server = await serve();
      const { client, channel } = reach();
      const stream = client.streamingOutputCall(long(size, 100))[Symbol.asyncIterator]();
      leaseOf((await stream.next()).value as object)?.release();
      const exit = server.shutdown(60_000);
      await until(() => Promise.resolve(channel.state !== 'ready'));
      let messages = 1;
      for (let next = await stream.next(); !next.done; next = await stream.next()) {
        leaseOf(next.value)?.release();
        ++messages;
      }
      expect(messages).toBe(100);
      expect(await exit).toBe(0);
      await serve();
      expect((await client.streamingInputCall([{}])).messages).toBe(1);
    });

    test('a server does not wait for the calls longer than its grace period', async () => {
      const server = await serve();
      const { client } = reach();
      const { ends } = await openStreams(client, size);
      expect(await server.shutdown(50)).toBe(0);
      for (const end of ends) expect((await end).code).toBe(Status.UNAVAILABLE);
    });

    test('a channel that is closed ends the calls at both ends', async () => {
      const server = await serve();
      const { client, channel } = reach();
      const { ends } = await openStreams(client, size);
      await channel.close();
      for (const end of ends) expect((await end).code).toBe(Status.UNAVAILABLE);
      await until(async () => (await server.report()).log.left === 3);
      await until(async () => (await server.report()).sessions === 0);
    });
  },
);

describe.each(fabrics)('over %s, a slow reader', (name) => {
  beforeEach(() => over(name));

  /** Checks that other calls on the same session continue. */
  async function othersGoOn(client: Client): Promise<void> {
    for (let i = 0; i < 20; ++i) {
      const { payload } = await client.unaryCall({ responseSize: 300_000 });
      expect(payload?.body.byteLength).toBe(300_000);
      leaseOf(payload!)?.release();
    }
    let messages = 0;
    for await (const response of client.streamingOutputCall(long(50_000, 200))) {
      leaseOf(response)?.release();
      ++messages;
    }
    expect(messages).toBe(200);
    expect((await client.streamingInputCall(Array(500).fill({}) as object[])).messages).toBe(500);
  }

  test.each([
    [64, 4000],
    [8000, 60],
    [100_000, 60],
    [8_000_000, 4],
  ])('at the server stops its sender after some messages of %i bytes', async (size, most) => {
    await serve();
    const { client } = reach();
    const giveUp = new AbortController();
    const { state, requests } = endless({ ...never, payload: { body: pattern(size, 1), seed: 1 } });
    const end = failure(
      client.fullDuplexCall(requests, { signal: giveUp.signal })[Symbol.asyncIterator]().next(),
    );
    await othersGoOn(client);
    const { taken } = state;
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThanOrEqual(most);
    await othersGoOn(client);
    expect(state.taken).toBe(taken);
    giveUp.abort();
    expect((await end).code).toBe(Status.CANCELLED);
    await until(() => Promise.resolve(state.left));
  });

  test.each([64, 8000, 100_000, 8_000_000])(
    'at the client stops the server after some messages of %i bytes',
    async (size) => {
      const server = await serve();
      const { client } = reach();
      const stream = client.streamingOutputCall(long(size, 2000))[Symbol.asyncIterator]();
      const { value } = await stream.next();
      const before = stats(fabric).arenaLeasedBytes;
      await othersGoOn(client);
      // Only a window of messages waits for the reader, instead of the whole stream.
      expect(stats(fabric).arenaLeasedBytes).toBeLessThanOrEqual(before + 48_000_000);
      expect((await server.report()).log.left).toBe(2);
      leaseOf(value as object)?.release();
      await stream.return?.();
      await until(async () => (await server.report()).log.left === 3);
    },
  );
});
