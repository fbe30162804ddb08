/**
 * A proxy acknowledges the bytes of a session's data connection and drops them, while it passes on the
 * sideband connection. The client notices that the server answers only pings, and uses another connection.
 */
import type { Socket } from 'node:net';
import { createChannel, createClient, createServer, Status } from 'rdma-rpc';
import { afterEach, expect, test, vi } from 'vitest';
import { ClientLink } from '../../runtime/client/connections/client-link.ts';
import { Endpoint } from '../../runtime/client/connections/endpoint.ts';
import { silenceMaxMs, verifyTimeoutMs } from '../../runtime/client/connections/limits.ts';
import { caught, until } from '../outcomes.ts';
import { type EchoLog, echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { type Passage, portOf, Relay } from './proxy.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  for (const close of closing.splice(0).reverse()) await close();
});

async function open() {
  const log: EchoLog = { started: 0, aborted: [] };
  const server = createServer().add(EchoDefinition, echoHandlers(log));
  closing.push(() => server.shutdown({ graceMs: 0 }));
  const port = portOf(await server.listen('127.0.0.1:0'));
  const passages: Passage[] = [];
  const relay = new Relay(
    () => port,
    (passage) => passages.push(passage),
  );
  closing.push(() => relay.close());
  const channel = createChannel(await relay.listen(), { fabric: 'tcp' });
  closing.push(() => channel.close());
  let link: ClientLink | undefined;
  const { onCallDone } = ClientLink.prototype;
  vi.spyOn(ClientLink.prototype, 'onCallDone').mockImplementation(function (this: ClientLink) {
    link = this;
    onCallDone.call(this);
  });
  const client = createClient(EchoDefinition, channel);
  await client.fetch({});
  return { channel, client, log, passages, link: link! };
}

/** Reads and drops everything that comes from one side. */
function drop(from: Socket, to: Socket): void {
  from.unpipe(to);
  from.resume();
}
const ways: Readonly<Record<string, (passage: Passage) => void>> = {
  'to the server': ({ client, server }) => drop(client, server),
  'to the client': ({ client, server }) => drop(server, client),
};
const pings = 4;

/** Waits for the answers to all pings of a check, and skips the pauses between them. */
async function answerPings(check: () => void): Promise<void> {
  const pongs = vi.spyOn(Endpoint.prototype, 'onPong');
  check();
  for (let number = 1; number <= pings; ++number) {
    await until(() => pongs.mock.calls.length === number);
    if (number < pings) vi.advanceTimersByTime(verifyTimeoutMs);
  }
  pongs.mockRestore();
}

test.each(Object.entries(ways))(
  'a connection that carries no bytes %s is left, and its calls end',
  async (_, swallow) => {
    const { client, log, passages, link } = await open();
    const hanging = caught(client.behave({ text: 'hang' }));
    await until(() => log.started === 2);
    swallow(passages[1]!);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    await answerPings(() => link.onSilence());
    await until(() => link.draining);
    // New calls use another connection. Calls under way stay for another minute.
    await client.fetch({});
    expect([passages.length, link.ended]).toEqual([4, undefined]);
    await until(() => link.path()!.pending === 0);
    await answerPings(() => vi.advanceTimersByTime(silenceMaxMs));
    const error = await hanging;
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
    expect(error.message).toMatch(
      /nothing comes over the data connection to 127\.0\.0\.1:\d+, although the server answers on the sideband/,
    );
    await client.fetch({});
    expect(passages).toHaveLength(4);
  },
);

/** More bytes than the sockets on the way take. */
const uploadBytes = 12 << 20;

/**
 * The network between the client and a proxy passes only what the test reads. The real counters of the kernel
 * tell whether bytes move.
 */
test('an upload over a slow network keeps its connection until no byte moves', async () => {
  const { client, passages, link } = await open();
  const { client: near, server: far } = passages[1]!;
  const upload = caught(client.echo({ payload: new Uint8Array(uploadBytes) }));
  // The server asks for the bytes of the request, so the network becomes slow after their beginning.
  let passed = 0;
  await new Promise<void>((resolve) => {
    near.on('data', ({ byteLength }) => {
      passed += byteLength;
      if (passed > uploadBytes / 100) resolve();
    });
  });
  near.removeAllListeners('data').unpipe(far).pause();
  await until(() => link.path()!.pending > 0);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  await answerPings(() => link.onSilence());
  await until(() => link.draining);
  for (let minute = 1; minute <= 3; ++minute) {
    vi.advanceTimersByTime(verifyTimeoutMs);
    const { acknowledged } = link.path()!;
    await until(() => {
      near.read();
      return link.path()!.acknowledged > acknowledged;
    });
    await answerPings(() => vi.advanceTimersByTime(silenceMaxMs - verifyTimeoutMs));
    await until(() => vi.getTimerCount() > 0);
    expect(link.ended).toBeUndefined();
  }
  await answerPings(() => vi.advanceTimersByTime(silenceMaxMs));
  expect(await upload).toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
  expect(link.ended).toMatch(/^nothing comes over the data connection/);
});

test('a connection that carries bytes again keeps its calls', async () => {
  const { client, log, passages, link } = await open();
  const hurry = new AbortController();
  const hanging = caught(client.behave({ text: 'hang' }, { signal: hurry.signal }));
  await until(() => log.started === 2);
  const { client: near, server: far } = passages[1]!;
  near.unpipe(far);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  await answerPings(() => link.onSilence());
  await until(() => link.draining);
  near.pipe(far);
  const start = vi.spyOn(link.session, 'onSettled');
  vi.advanceTimersByTime(silenceMaxMs);
  await until(() => start.mock.calls.length > 0);
  vi.advanceTimersByTime(10 * silenceMaxMs);
  expect(link.ended).toBeUndefined();
  hurry.abort();
  expect(await hanging).toMatchObject({ code: Status.CANCELLED });
  await until(() => link.ended === 'drained');
});

test('a slow handler on a connection that works costs no connection', async () => {
  const { client, log, passages, link } = await open();
  const hurry = new AbortController();
  const hanging = caught(client.behave({ text: 'hang' }, { signal: hurry.signal }));
  await until(() => log.started === 2);
  const settled = vi.spyOn(link.session, 'onSettled');
  link.onSilence();
  await until(() => settled.mock.calls.length > 0);
  await client.fetch({});
  expect([link.draining, link.ownCalls, passages.length]).toEqual([false, 0, 2]);
  hurry.abort();
  await hanging;
});
