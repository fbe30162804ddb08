/**
 * One signal is passed to many calls at a time. Node warns of a leak at the eleventh listener, and no
 * listener may stay after its call.
 */
import { getEventListeners } from 'node:events';
import {
  type CallOptions,
  createChannel,
  createClient,
  type HandlerContext,
  RpcError,
  Status,
} from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { CallExtras, type CallPlace } from '../../runtime/client/session/call-extras.ts';
import { listenLater } from '../../runtime/core/timeout-signals.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { openPair, type Pair } from '../runtime/pair.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';

const callsAtOnce = 50;
const listenersOf = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;
const code = (call: Promise<unknown>): Promise<number> =>
  call.then(
    () => Status.OK,
    (error) => RpcError.from(error).code,
  );
const many = (call: (at: number) => Promise<unknown>): Promise<number>[] =>
  Array.from({ length: callsAtOnce }, (_, at) => code(call(at)));
const all = (status: number): number[] => new Array<number>(callsAtOnce).fill(status);

const open: Pair[] = [];
afterEach(async () => {
  for (const pair of open.splice(0)) await pair.close();
});

const hang = (_: object, { signal }: HandlerContext): Promise<object> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve({})));

async function clients() {
  const pair = await openPair('sim', (server) =>
    server.add(EchoDefinition, { echo: (request) => request, behave: hang }).add(StreamsDefinition, {
      async *count({ count }, context) {
        yield { number: count };
        if (count > 0) await hang({}, context);
      },
    }),
  );
  open.push(pair);
  await pair.channel.ready();
  return {
    echo: createClient(EchoDefinition, pair.channel),
    streams: createClient(StreamsDefinition, pair.channel),
  };
}
type Clients = Awaited<ReturnType<typeof clients>>;

async function readAll(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}

const kinds: [string, (to: Clients, hangs: boolean, options: CallOptions) => Promise<unknown>][] = [
  ['unary calls', ({ echo }, hangs, options) => (hangs ? echo.behave({}, options) : echo.echo({}, options))],
  ['streams', ({ streams }, hangs, options) => readAll(streams.count({ count: Number(hangs) }, options))],
];

describe.each(kinds)('%s', (_, call) => {
  test('that one signal cancels have one listener, and all of them are cancelled', async () => {
    const to = await clients();
    const controller = new AbortController();
    const { signal } = controller;
    const calls = many(() => call(to, true, { signal }));
    expect(listenersOf(signal)).toBe(1);
    controller.abort();
    expect(await Promise.all(calls)).toEqual(all(Status.CANCELLED));
    expect(listenersOf(signal)).toBe(0);
  });

  test('that are answered leave no listener, and other calls can still be cancelled', async () => {
    const to = await clients();
    const controller = new AbortController();
    const { signal } = controller;
    expect(await Promise.all(many(() => call(to, false, { signal })))).toEqual(all(Status.OK));
    expect(listenersOf(signal)).toBe(0);
    const hanging = code(call(to, true, { signal }));
    expect(await Promise.all(many(() => call(to, false, { signal })))).toEqual(all(Status.OK));
    expect(listenersOf(signal)).toBe(1);
    controller.abort();
    expect(await hanging).toBe(Status.CANCELLED);
    expect(listenersOf(signal)).toBe(0);
  });

  test.each([
    ['another', new AbortController()],
    ['the same', undefined],
  ])('with a signal of their own, made for a call with %s, leave neither listening', async (_, of) => {
    const to = await clients();
    const own = new AbortController();
    const parent = of ?? own;
    const context = { signal: parent.signal, timeoutMs: () => undefined } as unknown as HandlerContext;
    const calls = many(() => call(to, true, { signal: own.signal, context }));
    expect([listenersOf(own.signal), listenersOf(parent.signal)]).toEqual([1, 1]);
    parent.abort();
    expect(await Promise.all(calls)).toEqual(all(Status.CANCELLED));
    expect([listenersOf(own.signal), listenersOf(parent.signal)]).toEqual([0, 0]);
  });
});

test('calls that wait for a connection with one signal have one listener', async () => {
  const channel = createChannel('unix:/nobody/is/here.sock');
  const controller = new AbortController();
  const { signal } = controller;
  const waits = many(() => channel.ready({ timeoutMs: 60_000, signal }));
  expect(listenersOf(signal)).toBe(1);
  controller.abort();
  expect(await Promise.all(waits)).toEqual(all(Status.CANCELLED));
  expect(listenersOf(signal)).toBe(0);
  await channel.close();
});

describe('a signal of AbortSignal.timeout()', () => {
  /** Returns a signal that counts each listener added to it. */
  function counted(ms: number): { signal: AbortSignal; listened: () => number } {
    const signal = AbortSignal.timeout(ms);
    let times = 0;
    const { addEventListener } = signal;
    signal.addEventListener = ((...given: Parameters<typeof addEventListener>) => {
      ++times;
      return addEventListener.apply(signal, given);
    }) as typeof addEventListener;
    return { signal, listened: () => times };
  }

  test('gets no listener for a call that ends at once, not even when the call is repeated', async () => {
    const { signal, listened } = counted(60_000);
    const call = new CallExtras({ signal }, undefined);
    const cancelled: number[] = [];
    const place: CallPlace = { cancelCall: (token) => void cancelled.push(token) };
    for (let attempt = 0; attempt < 3; ++attempt) {
      call.watch(place, attempt);
      call.unwatch();
    }
    // This callback is called together with the other callbacks, or after them.
    await new Promise<void>((resolve) => listenLater({ listenNow: resolve }));
    expect([listened(), listenersOf(signal), cancelled]).toEqual([0, 0, []]);
  });

  test('that has fired before the calls listen cancels all of them, and gets no listener', async () => {
    const { signal, listened } = counted(60_000);
    const calls = Array.from({ length: callsAtOnce }, () => new CallExtras({ signal }, undefined));
    let cancelled = 0;
    for (const call of calls) {
      // A call that waits in a queue is settled at once.
      const cancelCall = (): void => {
        ++cancelled;
        call.unwatch();
      };
      call.watch({ cancelCall }, 0);
    }
    Object.defineProperty(signal, 'aborted', { value: true });
    await new Promise<void>((resolve) => listenLater({ listenNow: resolve }));
    expect([listened(), cancelled]).toEqual([0, callsAtOnce]);
  });

  test.each(kinds)(
    'is heard of by %s that are under way, also when it fires before they listen',
    async (_, call) => {
      const to = await clients();
      for (const ms of [0, 1, 60]) {
        const { signal, listened } = counted(ms);
        expect(await Promise.all(many(() => call(to, true, { signal })))).toEqual(all(Status.CANCELLED));
        expect(listened()).toBeLessThanOrEqual(1);
        expect(listenersOf(signal)).toBe(0);
      }
    },
  );
});
