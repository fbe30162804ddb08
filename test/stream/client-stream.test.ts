/**
 * Tests a client's stream against a scripted native side: the frames that it sends, its end, and servers that
 * violate the rules.
 */
import { type CallOptions, type RpcError, Status } from 'rdma-rpc';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { FabricContext } from '../../runtime/boundary/fabric-context.ts';
import { deadlines } from '../../runtime/boundary/time/deadlines.ts';
import { clientMethod } from '../../runtime/client/call/client-method.ts';
import { ClientSession } from '../../runtime/client/session/client-session.ts';
import { ClientStreams } from '../../runtime/client/stream/client-streams.ts';
import { openStream } from '../../runtime/client/stream/open-stream.ts';
import { partLingerMs } from '../../runtime/limits.ts';
import { EvKind, PendingRelease, Reason, SubOp } from '../../runtime/native/native.ts';
import {
  PartFlag,
  PartHeader,
  PartKind,
  partHeader,
  pullMethod,
  pushMethod,
} from '../../runtime/stream/part-header.ts';
import { FakeNative } from '../runtime/fake-native.ts';
import { Item, StreamsDefinition } from './gen/stream.rdma.ts';
import type { MethodName } from './stream-bed.ts';

interface SentPart {
  slot: number;
  kind: number;
  sequence: number;
  count: number;
  last: boolean;
  method: number;
}

let native: FakeNative;
let streams: ClientStreams;
let done: number;
/** Number of streams that have been opened, as the session counts them. */
let opened: number;

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

function setUp({ inflightMax = 4, streamsMax = 2, slots = 64 } = {}): void {
  native = new FakeNative({ slots });
  const context = new FabricContext('sim', native);
  const session = context.sessions.create({
    role: 'client',
    inflightMax,
    messageMaxBytes: 1e6,
    peerMessageMaxBytes: 1e6,
  });
  const target = { session, eagerBytes: 8192, messageMaxBytes: 100_000 };
  const listener = {
    onCallDone: () => undefined,
    onSessionDown: () => undefined,
    onConsecutiveErrors: () => undefined,
    onSilence: () => undefined,
    onRejected: () => undefined,
  };
  const queue = {
    waiting: { size: 0 },
    pump: () => undefined,
    pumpAfter: () => undefined,
    awaitMemory: () => false,
    requeue: () => false,
  };
  const owner = new ClientSession(context, target, inflightMax, queue, {
    ...listener,
    onSessionLost: () => undefined,
    lastWords: () => undefined,
  });
  done = 0;
  opened = 0;
  streams = new ClientStreams(context, target, inflightMax, streamsMax, {
    unserved: false,
    onStreamOpening: () => void ++opened,
    onStreamUnopened: () => void --opened,
    onStreamAnswer: () => undefined,
    onStreamDone: () => void ++done,
    lost: () => undefined,
    onRejected: () => undefined,
  });
  owner.parts = streams;
}
beforeEach(() => setUp());

function start(name: MethodName, request: unknown, options?: CallOptions): AsyncIterator<Item> {
  const host = {
    startStream: (stream: { open(on: ClientStreams): boolean }) => void stream.open(streams),
    forgetStream: () => undefined,
  };
  const method = clientMethod(StreamsDefinition.methods[name], -1);
  const responses = openStream(host, method, request, options) as AsyncIterable<Item>;
  return responses[Symbol.asyncIterator]();
}

/** Returns the parts that were sent since the last call. */
async function sent(): Promise<SentPart[]> {
  await turn();
  native.flush();
  return native.submitted.splice(0).map(({ op, call, method, metadata }) => {
    expect(op).toBe(SubOp.part);
    const header = new PartHeader();
    expect(header.read(metadata, 0, metadata.length)).toBe('');
    const { kind, sequence, count, last } = header;
    return { slot: call, kind, sequence, count, last, method };
  });
}

const answer = (
  slot: number,
  sequence: number,
  messages: Uint8Array[],
  flags = 0,
  kind: number = PartKind.pull,
) => ({
  kind: EvKind.settled,
  call: slot,
  metadata: partHeader(
    1,
    sequence,
    messages.length,
    kind,
    flags | (messages.length > 0 ? PartFlag.packed : 0),
  ).slice(),
  message: Uint8Array.from(messages.flatMap((each) => [each.length, 0, ...each])),
  processed: 2,
});
const settled = (slot: number, status = 0, text = '') => ({
  kind: EvKind.settled,
  call: slot,
  status,
  message: new TextEncoder().encode(text),
  processed: 2,
});
const item = (number: number) => Item.encode({ number });
const failed = (promise: Promise<unknown>): Promise<RpcError> =>
  promise.then(
    () => Promise.reject(new Error('it went well')),
    (error: RpcError) => error,
  );

test('a small request is sent in the OPEN, and two parts are requested', async () => {
  const responses = start('count', { count: 1 });
  expect(await sent()).toEqual([]);
  void responses.next();
  expect(await sent()).toMatchObject([
    { slot: 4, kind: PartKind.open, count: 1, last: true, method: StreamsDefinition.methods.count.id | 0 },
    { kind: PartKind.pull, sequence: 0, method: pullMethod(StreamsDefinition.methods.count.id) | 0 },
    { kind: PartKind.pull, sequence: 1 },
  ]);
});

test.each([
  ['in a slot', 10],
  ['large', 50_000],
])(
  'an OPEN that throws before it is sent leaves nothing, and one that has been sent is not forgotten: %s',
  async (_, bytes) => {
    const { outgoing } = streams.context;
    const { submit } = outgoing;
    const overflow = new RangeError('Maximum call stack size exceeded');
    const request = { payload: new Uint8Array(bytes) };
    const spy = vi.spyOn(outgoing, 'submit').mockImplementationOnce(() => {
      throw overflow;
    });
    await expect(start('count', request).next()).rejects.toThrow(overflow.message);
    expect([await sent(), opened, streams.size, streams.full]).toEqual([[], 0, 0, false]);
    spy.mockImplementation(function (this: typeof outgoing, ...given) {
      // This is the last action on an OPEN before native code gets it.
      expect(streams.size).toBe(1);
      return submit.apply(this, given);
    });
    void start('count', request).next();
    spy.mockRestore();
    expect((await sent())[0]).toMatchObject({ kind: PartKind.open, slot: 4 });
    expect([opened, streams.size]).toEqual([1, 1]);
  },
);

test('a large request is sent in its own part, behind the OPEN', async () => {
  void start('count', { payload: new Uint8Array(50_000) }).next();
  expect(await sent()).toMatchObject([
    { kind: PartKind.open, count: 0, last: false },
    { kind: PartKind.pull },
    { kind: PartKind.pull },
    { kind: PartKind.push, sequence: 0, count: 1, last: false, method: pushMethod },
    { kind: PartKind.push, sequence: 1, count: 0, last: true },
  ]);
});

test('parts are requested as they are read, and the window grows', async () => {
  const responses = start('count', {});
  const first = responses.next();
  const [, a, b] = await sent();
  native.deliver(answer(a!.slot, 0, [item(0), item(1)]));
  expect((await first).value?.number).toBe(0);
  expect(await sent()).toMatchObject([{ kind: PartKind.pull, sequence: 2 }]);
  await responses.next();
  expect(await sent()).toMatchObject([{ sequence: 3 }]);
  native.deliver(answer(b!.slot, 1, [item(2)]));
  expect(await sent()).toMatchObject([{ sequence: 4 }]);
  expect((await responses.next()).value?.number).toBe(2);
});

test('its status arrives after the messages, and its slots are free again', async () => {
  const responses = start('count', {});
  const first = responses.next();
  const [open, a, b] = await sent();
  native.deliver(answer(a!.slot, 0, [item(0), item(1)], PartFlag.last), settled(open!.slot, 5, 'gone'));
  expect((await first).value?.number).toBe(0);
  expect(done).toBe(0);
  native.deliver(answer(b!.slot, 1, [], PartFlag.last));
  expect([done, streams.size]).toEqual([1, 0]);
  expect((await responses.next()).value?.number).toBe(1);
  expect(await failed(responses.next())).toMatchObject({ code: Status.NOT_FOUND, rawMessage: 'gone' });
  expect((await responses.next()).done).toBe(true);
});

test('a stream waits for a call slot and a send slot', async () => {
  for (let i = 0; i < 2; ++i) void start('count', {}).next();
  expect(streams.full).toBe(true);
  expect(streams.nextNumber()).toBe(0);
  setUp({ slots: 1 });
  native.freeAtFlush = false;
  void start('count', {}).next();
  expect(await sent()).toMatchObject([{ kind: PartKind.open }]);
  native.releaseSlots();
  native.deliver({ kind: EvKind.slotsFree });
  expect(await sent()).toMatchObject([{ kind: PartKind.pull, sequence: 0 }]);
});

test('a part that repeatedly finds no send slot does not use up the call slots', async () => {
  setUp({ slots: 2 });
  native.freeAtFlush = false;
  void start('count', {}).next();
  expect(await sent()).toMatchObject([{ kind: PartKind.open }, { kind: PartKind.pull, sequence: 0 }]);
  for (let i = 0; i < 20; ++i) native.deliver({ kind: EvKind.slotsFree });
  expect(await sent()).toEqual([]);
  native.releaseSlots();
  native.deliver({ kind: EvKind.slotsFree });
  expect(await sent()).toMatchObject([{ kind: PartKind.pull, sequence: 1 }]);
});

describe('a server that breaks the rules', () => {
  test.each([
    ['no part header', (slot: number) => settled(slot)],
    ['the header of another part', (slot: number) => answer(slot, 1, [item(0)])],
    ['a part of another kind', (slot: number) => answer(slot, 0, [item(0)], 0, PartKind.push)],
    ['messages that are none', (slot: number) => answer(slot, 0, [Uint8Array.of(255)])],
    [
      'lengths that do not add up',
      (slot: number) => ({ ...answer(slot, 0, [item(1)]), message: Uint8Array.of(9, 0) }),
    ],
  ])('%s: the stream is cancelled and fails', async (_, event) => {
    const first = failed(start('count', {}).next());
    const [open, a, b] = await sent();
    native.deliver(event(a!.slot));
    expect(native.cancels).toMatchObject([{ call: open!.slot, reason: Reason.cancelled }]);
    native.deliver({ kind: EvKind.failed, call: open!.slot, reason: Reason.cancelled, processed: 1 });
    expect(await first).toMatchObject({ code: Status.INTERNAL, processed: 'yes' });
    expect((await first).rawMessage).toContain('the response cannot be used');
    // The stream's other part is still on its way, so the slot is not free before that part has come.
    expect(done).toBe(0);
    native.deliver(answer(b!.slot, 1, [], PartFlag.last));
    expect(done).toBe(1);
  });

  test('an end before the last message', async () => {
    const first = failed(start('count', {}).next());
    const [open, a, b] = await sent();
    native.deliver(settled(open!.slot), answer(a!.slot, 0, []), answer(b!.slot, 1, []));
    expect((await first).rawMessage).toContain('before its last message');
  });

  test('answers of parts that were never sent are dropped', async () => {
    native.deliver(answer(5, 0, [item(0)]), settled(4), settled(11));
    native.deliver({ kind: EvKind.failed, call: 6, reason: Reason.sessionLost });
    expect(done).toBe(0);
  });
});

test("a cancelled stream ends as the application has requested, whatever the handler's result is", async () => {
  const given = new AbortController();
  const responses = start('count', {}, { signal: given.signal });
  const first = failed(responses.next());
  const [open, a, b] = await sent();
  given.abort();
  native.deliver(settled(open!.slot, 5, 'gone'), answer(a!.slot, 0, []), answer(b!.slot, 1, []));
  expect(await first).toMatchObject({ code: Status.CANCELLED });
  expect(done).toBe(1);
});

describe('messages that fail', () => {
  test('a part that gets no memory fails the stream', async () => {
    const first = failed(start('count', {}).next());
    const [open, a, b] = await sent();
    native.deliver({ kind: EvKind.failed, call: a!.slot, reason: Reason.noMemory, processed: 1 });
    native.deliver({ kind: EvKind.failed, call: open!.slot, reason: Reason.cancelled, processed: 1 });
    native.deliver(answer(b!.slot, 1, [], PartFlag.last));
    expect(await first).toMatchObject({ code: Status.RESOURCE_EXHAUSTED });
    expect(done).toBe(1);
  });

  test('parts that the server does not answer after the stream was left are cancelled after a while', async () => {
    const responses = start('count', {});
    const first = responses.next();
    const [open, a, b] = await sent();
    const left = responses.return?.();
    const ends = (slot: number) => ({
      kind: EvKind.failed,
      call: slot,
      reason: Reason.cancelled,
      processed: 1,
    });
    native.deliver(ends(open!.slot));
    expect((await first).done).toBe(true);
    await left;
    expect(native.cancels.map(({ call }) => call)).toEqual([open!.slot]);
    deadlines.run(performance.now() + partLingerMs + 100);
    expect(native.cancels.map(({ call }) => call)).toEqual([open!.slot, a!.slot, b!.slot]);
    expect(done).toBe(0);
    native.deliver(ends(a!.slot), ends(b!.slot));
    expect([done, streams.size]).toEqual([1, 0]);
  });

  test('slots of parts that are pending release become free later, and streams wait for them', async () => {
    setUp({ streamsMax: 1 });
    const responses = start('count', {});
    const first = responses.next();
    const [open, a, b] = await sent();
    const left = responses.return?.();
    const ends = (slot: number, held = 0) => ({
      kind: EvKind.failed,
      call: slot,
      held,
      reason: Reason.cancelled,
      processed: 1,
    });
    native.deliver(ends(open!.slot));
    await Promise.all([first, left]);
    deadlines.run(performance.now() + partLingerMs + 100);
    native.deliver(ends(a!.slot, PendingRelease.slot), ends(b!.slot, PendingRelease.slot));
    expect(done).toBe(1);
    void start('count', {}).next();
    const next = await sent();
    expect(next.map(({ kind }) => kind)).toEqual([PartKind.open, PartKind.pull]);
    native.deliver({ kind: EvKind.released, call: a!.slot });
    const more = await sent();
    expect(more.map(({ slot, kind }) => [slot, kind])).toEqual([[a!.slot, PartKind.pull]]);
  });

  test('a session that is lost fails all of its streams', async () => {
    const both = [start('count', {}), start('echo', [{ number: 1 }])].map((each) => failed(each.next()));
    await sent();
    native.deliver({ kind: EvKind.sessionDown });
    for (const error of await Promise.all(both)) expect(error.code).toBe(Status.UNAVAILABLE);
    expect([done, streams.size]).toEqual([2, 0]);
  });

  test('a push that the server refuses fails the stream', async () => {
    const first = failed(start('echo', [{ number: 1 }]).next());
    const parts = await sent();
    const push = parts.find(({ kind }) => kind === PartKind.push)!;
    native.deliver(settled(push.slot, Status.RESOURCE_EXHAUSTED, 'too large'));
    native.deliver({ kind: EvKind.failed, call: parts[0]!.slot, reason: Reason.cancelled, processed: 1 });
    expect(await first).toMatchObject({ code: Status.RESOURCE_EXHAUSTED, rawMessage: 'too large' });
  });
});
