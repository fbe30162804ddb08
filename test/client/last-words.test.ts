/**
 * Tests that a server that ends a session by itself sends the reason. Callers get that reason although the
 * session's queue pair is already gone.
 */
import { type Channel, createChannel, createClient, createServer, type RpcError, Status } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ClientLink } from '../../runtime/client/connections/client-link.ts';
import { Link } from '../../runtime/control/link.ts';
import { EvKind, PendingRelease, Reason } from '../../runtime/native/native.ts';
import { ServerConnection } from '../../runtime/server/server-connection.ts';
import { caught, turn, until } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { ClientBed } from './client-bed.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const close of closing.splice(0).reverse()) await close();
});

const why = 'the peer has taken too little';

/**
 * Opens a channel to a server that ends its session in native code, as it does for a client whose calls make
 * no progress.
 */
async function open(
  fabric: 'tcp' | 'shm',
): Promise<{ channel: Channel; fail: () => void; started: () => number }> {
  let started = 0;
  let connection: ServerConnection | undefined;
  const { begin } = ServerConnection.prototype;
  vi.spyOn(ServerConnection.prototype, 'begin').mockImplementation(function (this: ServerConnection, life) {
    connection = this;
    begin.call(this, life);
  });
  const server = createServer({ fabric, log: () => undefined })
    .add(EchoDefinition, {
      behave: async () => {
        ++started;
        return new Promise(() => undefined);
      },
    })
    .add(StreamsDefinition, {
      async *count() {
        ++started;
        await new Promise(() => undefined);
      },
    });
  const address = await server.listen('127.0.0.1:0');
  closing.push(() => server.shutdown({ graceMs: 0 }));
  const channel = createChannel(address, { fabric });
  closing.push(() => channel.close());
  await channel.ready();
  await until(() => connection !== undefined);
  return {
    channel,
    started: () => started,
    fail: () => {
      const { context, target } = connection!.prepared;
      context.sessions.close(target.session, why);
    },
  };
}

test.each(['tcp', 'shm'] as const)('calls and streams over %s', async (fabric) => {
  const { channel, fail, started } = await open(fabric);
  const call = caught(createClient(EchoDefinition, channel).behave({}));
  const stream = caught(createClient(StreamsDefinition, channel).count({})[Symbol.asyncIterator]().next());
  await until(() => started() === 2);
  fail();
  for (const error of (await Promise.all([call, stream])) as RpcError[]) {
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
    expect(error.message).toContain(`the server's session failed: ${why}`);
  }
});

test('a client gives the reason of a failed session in its bye', async () => {
  let link: ClientLink | undefined;
  const { get } = Object.getOwnPropertyDescriptor(ClientLink.prototype, 'streams')!;
  vi.spyOn(ClientLink.prototype, 'streams', 'get').mockImplementation(function (this: ClientLink) {
    link = this;
    return get!.call(this);
  });
  const close = vi.spyOn(Link.prototype, 'close');
  const { channel } = await open('tcp');
  const stream = createClient(StreamsDefinition, channel).count({})[Symbol.asyncIterator]();
  const failed = caught(stream.next());
  const { context, target } = link!.connection;
  context.sessions.close(target.session, 'send failed: retry_exc_err');
  expect(await failed).toMatchObject({ code: Status.UNAVAILABLE });
  await vi.waitFor(() =>
    expect(close).toHaveBeenCalledWith('send failed: retry_exc_err', {
      type: 'bye',
      reason: "the client's session failed: send failed: retry_exc_err",
    }),
  );
});

describe('the end of a session', () => {
  let bed: ClientBed;
  let native: ClientBed['native'];
  let session: ClientBed['session'];
  const call: ClientBed['call'] = (request, options) => bed.call(request, options);
  beforeEach(() => {
    bed = new ClientBed();
    ({ native, session } = bed);
  });

  test('waits for the reason that the server sends, and keeps the order of events', async () => {
    native.endedThere = true;
    let say: (said: string | undefined) => void = () => undefined;
    bed.words = new Promise((resolve) => {
      say = resolve;
    });
    native.sessionErrorText = 'the queue pair is gone';
    const promises = [call({})!, call({})!];
    const broken = { kind: EvKind.failed, reason: Reason.sessionLost, processed: 1 };
    native.deliver({ ...broken, call: 0, held: PendingRelease.slot });
    native.deliver({ kind: EvKind.released, call: 0 }, { kind: EvKind.sessionDown });
    await turn();
    expect([bed.lost, bed.done, bed.down, session.inFlight]).toEqual([1, 0, [], 2]);
    say('it was too slow');
    const why = 'the queue pair is gone; the server says: it was too slow';
    for (const promise of promises) await expect(promise).rejects.toThrow(why);
    expect([bed.down, session.inFlight, session.held]).toEqual([[why], 0, 0]);
    expect(bed.allSettledOnce).toBe(true);
  });

  test('has the reason of the server if it arrives in time, otherwise the reason of this side', async () => {
    native.endedThere = true;
    bed.words = Promise.resolve(undefined);
    native.sessionErrorText = 'the queue pair is gone';
    const promise = call({})!;
    native.deliver({ kind: EvKind.sessionDown });
    await expect(promise).rejects.toThrow('the connection was lost (the queue pair is gone)');
  });

  test('is reported at once when this side has ended the session', async () => {
    bed.words = new Promise(() => undefined);
    const promise = call({})!;
    native.deliver({ kind: EvKind.sessionDown });
    await expect(promise).rejects.toMatchObject({ code: Status.UNAVAILABLE });
  });

  test('of a connection that the server has refused means that none of its calls has run', async () => {
    native.endedThere = true;
    let say: (said: string | undefined) => void = () => undefined;
    bed.words = new Promise((resolve) => {
      say = resolve;
    });
    bed.requeues = true;
    call({ number: 7 });
    native.deliver(
      { kind: EvKind.failed, call: 0, reason: Reason.sessionLost, processed: 1 },
      { kind: EvKind.sessionDown },
    );
    session.unserved = true;
    say('come again');
    await turn();
    expect(bed.requeued).toMatchObject([{ request: { number: 7 } }]);
  });
});
