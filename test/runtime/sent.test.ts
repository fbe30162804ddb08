/**
 * Tests the value of `processed` for every failure: each step of a call with each fault that is possible
 * there, for small calls, large calls and streams. `no` must be certain (the handler has not run and will not
 * run), `yes` means that the server answered, and `maybe` means anything else.
 */
import { createServer as createTcpServer } from 'node:net';
import {
  type CallOptions,
  type Channel,
  type ChannelOptions,
  createChannel,
  createClient,
  type HandlerContext,
  type Interceptor,
  type Processed,
  RpcError,
  type ServerOptions,
  type StatusName,
  stats,
} from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { comes } from '../outcomes.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { collect } from '../stream/stream-world.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';
import { openPair, type PairWay, pairWays } from './pair.ts';

/** The action of the handler in this case. */
type Behaviour = (context: HandlerContext) => object | Promise<object>;

interface Bed {
  readonly channel: Channel;
  /** Makes the call. */
  call(options?: CallOptions): Promise<unknown>;
  /** Resolves when the handler has begun. */
  readonly begun: Promise<void>;
  /** Ends the connection from the server's side. */
  kill(): Promise<void>;
  /** The number of handlers that have begun. */
  readonly runs: { count: number };
}

type Kind = 'small' | 'large' | 'stream';
const kinds: readonly Kind[] = ['small', 'large', 'stream'];

const hang: Behaviour = () => new Promise(() => {});
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Returns a function that makes a call of this kind. */
function caller(channel: Channel, kind: Kind): Bed['call'] {
  const payload = new Uint8Array(kind === 'large' ? 100_000 : 10);
  return (options = {}) =>
    kind === 'stream'
      ? collect(createClient(StreamsDefinition, channel).count({}, options))
      : createClient(EchoDefinition, channel).behave({ payload }, options);
}

async function openBed(
  way: PairWay,
  kind: Kind,
  behaviour: Behaviour,
  serverOptions: ServerOptions = {},
  channelOptions: ChannelOptions = {},
): Promise<Bed> {
  const runs = { count: 0 };
  let begin = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const run = (context: HandlerContext) => {
    ++runs.count;
    begin();
    return behaviour(context);
  };
  const pair = await openPair(
    way,
    (server) =>
      server.add(EchoDefinition, { behave: (_, context) => run(context) }).add(StreamsDefinition, {
        async *count(_, context) {
          yield await run(context);
        },
      }),
    serverOptions,
    channelOptions,
  );
  closers.push(() => pair.close());
  await pair.channel.ready();
  return { channel: pair.channel, call: caller(pair.channel, kind), begun, runs, kill: () => pair.close() };
}

type Expected = readonly [StatusName, Processed];

/** Checks the error of a call. With `no`, it also checks that no handler has run. */
async function check(
  call: Promise<unknown>,
  [code, processed]: Expected,
  runs?: { count: number },
): Promise<void> {
  const error = await call.then(() => undefined, RpcError.from);
  expect([error?.codeName, error?.processed]).toEqual([code, processed]);
  if (processed === 'no' && runs !== undefined) {
    await new Promise((resolve) => setImmediate(resolve));
    expect(runs.count).toBe(0);
  }
}

/** Starts a server that listens but never answers, so that the channel stays connecting. */
async function silentAddress(): Promise<string> {
  const server = createTcpServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  closers.push(async () => server.close());
  return `127.0.0.1:${(server.address() as { port: number }).port}`;
}

describe.each(kinds)('%s, before there is a connection', (kind) => {
  const idle = (address: string, options: ChannelOptions = {}) => {
    const channel = createChannel(address, options);
    closers.push(() => channel.close());
    return channel;
  };

  test.each<[string, Expected, (channel: Channel, call: Bed['call']) => Promise<unknown>]>([
    ['cancelled before the call', ['CANCELLED', 'no'], (_, call) => call({ signal: AbortSignal.abort() })],
    ['no time left', ['DEADLINE_EXCEEDED', 'no'], (_, call) => call({ timeoutMs: 0 })],
    ['the deadline, while it connects', ['DEADLINE_EXCEEDED', 'no'], (_, call) => call({ timeoutMs: 20 })],
    [
      'cancelled while it connects',
      ['CANCELLED', 'no'],
      (_, call) => {
        const controller = new AbortController();
        const given = call({ signal: controller.signal });
        setImmediate(() => controller.abort());
        return given;
      },
    ],
    [
      'the channel closed while it connects',
      ['UNAVAILABLE', 'no'],
      (channel, call) => {
        const given = call();
        setImmediate(() => channel.close());
        return given;
      },
    ],
    [
      'the channel closed before the call',
      ['UNAVAILABLE', 'no'],
      async (channel, call) => {
        await channel.close();
        return call();
      },
    ],
  ])('%s', async (_, expected, make) => {
    const channel = idle(await silentAddress());
    await check(make(channel, caller(channel, kind)), expected);
  });

  test('without a listener calls fail as not processed', async () => {
    await check(caller(idle('127.0.0.1:1'), kind)(), ['UNAVAILABLE', 'no']);
  });

  test('without an answer to the handshake calls fail as not processed', async () => {
    const channel = idle(await silentAddress(), { connectTimeoutMs: 20 });
    await check(caller(channel, kind)(), ['UNAVAILABLE', 'no']);
  });
});

describe.each(pairWays)('%s', (way) => {
  describe.each(kinds)('%s', (kind) => {
    // The server confirms the end of a large call, and so reports that its handler has begun.
    const confirmed: Processed = kind === 'large' ? 'yes' : 'maybe';
    /**
     * Returns the number of calls that were released later. On a busy machine the confirmation may take
     * longer than the 10 ms that a caller waits.
     */
    const held = (): number => (way === 'sim' ? 0 : stats(way).callsReleasedLate);

    test('a call that waits behind others is not processed after a cancel, a deadline or the end of the channel', async () => {
      const bed = await openBed(way, kind, hang, {}, { inflightMax: 1, streamsMax: 1 });
      const first = bed.call().then(() => undefined, RpcError.from);
      await comes(bed.begun, 'the handler');
      bed.runs.count = 0;
      const controller = new AbortController();
      const cancelled = bed.call({ signal: controller.signal });
      const late = bed.call({ timeoutMs: 20 });
      const left = bed.call();
      const leftIsRefused = check(left, ['UNAVAILABLE', 'no'], bed.runs);
      controller.abort();
      await check(cancelled, ['CANCELLED', 'no'], bed.runs);
      await check(late, ['DEADLINE_EXCEEDED', 'no'], bed.runs);
      await bed.channel.close();
      await leftIsRefused;
      expect(await first).toMatchObject({ codeName: 'UNAVAILABLE', processed: 'maybe' });
    });

    test('a call beyond the queue limit is not processed', async () => {
      const bed = await openBed(way, kind, hang, {}, { inflightMax: 1, streamsMax: 1, queueMax: 0 });
      const first = bed.call().catch(() => undefined);
      await comes(bed.begun, 'the handler');
      bed.runs.count = 0;
      await check(bed.call(), ['RESOURCE_EXHAUSTED', 'no'], bed.runs);
      await bed.kill();
      await first;
    });

    test('a call that is cancelled in the iteration of its submission ends as CANCELLED', async () => {
      const bed = await openBed(way, kind, hang);
      const controller = new AbortController();
      const call = bed.call({ signal: controller.signal });
      controller.abort();
      // The call is passed to the device before it is cancelled, so the result is unknown.
      const error = await call.then(() => undefined, RpcError.from);
      expect(error?.codeName).toBe('CANCELLED');
      expect(['no', 'maybe']).toContain(error?.processed);
      if (error?.processed === 'no') expect(bed.runs.count).toBe(0);
    });

    test.each<[string, Expected, CallOptions, (bed: Bed, controller: AbortController) => unknown]>([
      ['cancelled', ['CANCELLED', confirmed], {}, (_, controller) => controller.abort('enough')],
      ['the deadline', ['DEADLINE_EXCEEDED', confirmed], { timeoutMs: 1000 }, () => undefined],
      ['the server gone', ['UNAVAILABLE', 'maybe'], {}, (bed) => bed.kill()],
      ['the channel closed', ['UNAVAILABLE', 'maybe'], {}, (bed) => bed.channel.close()],
    ])('in the handler: %s', async (_, expected, options, happen) => {
      const bed = await openBed(way, kind, hang);
      const controller = new AbortController();
      const call = bed.call({ signal: controller.signal, ...options }).then(() => undefined, RpcError.from);
      await comes(bed.begun, 'the handler');
      const heldBefore = held();
      await happen(bed, controller);
      const error = await call;
      const [code, processed] = expected;
      expect(error?.codeName).toBe(code);
      const allowed = held() > heldBefore ? [processed, 'maybe'] : [processed];
      // Both sides have the deadline. An answer of the server that comes first says that the handler has run.
      if (code === 'DEADLINE_EXCEEDED') allowed.push('yes');
      expect(allowed).toContain(error?.processed);
      expect(error?.rawMessage).toMatch(/^test\.(echo\.Echo\/Behave|stream\.Streams\/Count): ./);
      if (controller.signal.aborted) expect(error?.cause).toBe('enough');
    });

    test.each<[string, Expected, Behaviour, ServerOptions]>([
      [
        'a status',
        ['NOT_FOUND', 'yes'],
        () => {
          throw new RpcError(5, 'no');
        },
        {},
      ],
      [
        'an error',
        ['INTERNAL', 'yes'],
        () => {
          throw new Error('a secret');
        },
        {},
      ],
      [
        'the error of its own call, which was not sent',
        ['UNAVAILABLE', 'yes'],
        () => {
          throw new RpcError(14, 'elsewhere', { processed: 'no' });
        },
        {},
      ],
      ['the time limit of the server', ['DEADLINE_EXCEEDED', 'yes'], hang, { timeoutMaxMs: 50 }],
      ['a response that cannot be encoded', ['INTERNAL', 'yes'], () => ({ payload: 5 }), {}],
      [
        'header and trailer too large',
        ['RESOURCE_EXHAUSTED', 'yes'],
        ({ trailer }) => ({ number: trailer.append('k', 'v'.repeat(9000)).size }),
        {},
      ],
    ])('the answer of the handler: %s', async (_, expected, behaviour, options) => {
      const bed = await openBed(way, kind, behaviour, options);
      await check(bed.call(), expected);
    });

    test('a call that is cancelled while its answer is on the way ends once', async () => {
      const controller = new AbortController();
      const bed = await openBed(way, kind, () => {
        controller.abort();
        return {};
      });
      const outcome = await bed.call({ signal: controller.signal }).then(() => 'the answer', RpcError.from);
      // A cancelled large call waits a moment for the peer to release its memory; a response that arrives in
      // this time is used.
      if (kind === 'large' && outcome === 'the answer') return;
      expect(outcome).toMatchObject({ codeName: 'CANCELLED', processed: 'maybe' });
    });

    test('a call that has settled is not affected by a cancel or the loss of the server', async () => {
      const controller = new AbortController();
      const bed = await openBed(way, kind, () => ({ number: 7 }));
      const answer = await bed.call({ signal: controller.signal });
      controller.abort();
      await bed.kill();
      expect(answer).toMatchObject(kind === 'stream' ? [{ number: 7 }] : { number: 7 });
    });

    test('a call that the server refuses before the handler is not processed', async () => {
      const busy = await openBed(way, kind, hang, { handlersMax: 1 });
      const first = busy.call().catch(() => undefined);
      await comes(busy.begun, 'the handler');
      busy.runs.count = 0;
      await check(busy.call(), ['RESOURCE_EXHAUSTED', 'no'], busy.runs);
      await busy.kill();
      await first;
    });

    test('an interceptor of the server counts as its handler', async () => {
      const deny: Interceptor = () => () => Promise.reject(new RpcError(16, 'who are you?'));
      const pair = await openPair(way, (server) =>
        server
          .use(deny)
          .add(EchoDefinition, { behave: () => ({}) })
          .add(StreamsDefinition, { count: () => [] }),
      );
      closers.push(() => pair.close());
      await check(caller(pair.channel, kind)(), ['UNAUTHENTICATED', 'yes']);
    });

    test('a call of an unknown method is not processed', async () => {
      const pair = await openPair(way, (server) => server.add(EchoDefinition, {}));
      closers.push(() => pair.close());
      await check(caller(pair.channel, kind)(), ['UNIMPLEMENTED', 'no']);
    });
  });

  test.each<[string, Expected, object, ServerOptions]>([
    ['cannot be encoded', ['INTERNAL', 'no'], { text: 5 }, {}],
    [
      'is too large for the server',
      ['RESOURCE_EXHAUSTED', 'no'],
      { payload: new Uint8Array(5000) },
      { messageMaxBytes: 4000 },
    ],
  ])('a request that %s', async (_, expected, request, options) => {
    const bed = await openBed(way, 'small', () => ({}), options);
    await check(createClient(EchoDefinition, bed.channel).behave(request), expected, bed.runs);
  });

  test('a response that is too large for the client means that the call was processed', async () => {
    const bed = await openBed(
      way,
      'small',
      () => ({ payload: new Uint8Array(5000) }),
      {},
      { messageMaxBytes: 4000 },
    );
    await check(bed.call(), ['RESOURCE_EXHAUSTED', 'yes']);
  });
});
