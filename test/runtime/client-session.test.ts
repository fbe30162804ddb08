/** The client's call table against a scripted native side: every order of events, each call settles exactly once. */
import { beforeEach, describe, expect, test } from 'vitest';
import { CallExtras } from '../../runtime/call/call-extras.ts';
import { clientMethod } from '../../runtime/call/client-method.ts';
import { ClientSession } from '../../runtime/call/client-session.ts';
import { deadlines, turnNow } from '../../runtime/call/deadlines.ts';
import { FabricContext } from '../../runtime/call/fabric-context.ts';
import { BlockLease, leaseOf } from '../../runtime/call/lease.ts';
import { encodeMetadata } from '../../runtime/call/metadata-wire.ts';
import { Metadata, type RpcError, Status } from '../../runtime/index.ts';
import { EvKind, Reason, SubOp } from '../../runtime/native.ts';
import { FakeNative } from './fake-native.ts';
import { EchoDefinition, EchoMessage, type EchoMessageInit } from './gen/echo.rdma.ts';

const echo = clientMethod(EchoDefinition.methods.echo, -1);
const text = (value: string): Uint8Array => EchoMessage.encode({ text: value });

let native: FakeNative;
let session: ClientSession;
let down: string[];
/** How often each call has settled. */
let settled: Map<string, number>;
let done: number;
let lost: number;

function open(
  options: { inflightMax?: number; slots?: number; eagerBytes?: number; maxMessageBytes?: number } = {},
): void {
  native = new FakeNative({ slots: options.slots ?? 64 });
  const context = new FabricContext('sim', native);
  down = [];
  settled = new Map();
  done = 0;
  lost = 0;
  const target = {
    session: context.createSession({
      role: 'client',
      inflightMax: 8,
      maxMessageBytes: 1e6,
      peerMaxMessageBytes: 1e6,
    }),
    eagerBytes: options.eagerBytes ?? 8192,
    maxMessageBytes: options.maxMessageBytes ?? 1e6,
  };
  session = new ClientSession(context, target, options.inflightMax ?? 8, {
    onCallDone: () => void ++done,
    onSessionLost: () => void ++lost,
    onSessionDown: (_, reason) => down.push(reason),
  });
}

/** Starts a call; its promise also counts how often it settles. Undefined when there was no room. */
function call(
  request: EchoMessageInit,
  options: { timeoutMs?: number; extras?: CallExtras } = {},
): Promise<EchoMessage> | undefined {
  let started = false;
  const key = String(settled.size);
  settled.set(key, 0);
  const count = (): void => void settled.set(key, settled.get(key)! + 1);
  const promise = new Promise<EchoMessage>((resolve, reject) => {
    const deadlineMs = options.timeoutMs === undefined ? 0 : turnNow() + options.timeoutMs;
    started = session.start(
      echo,
      request,
      deadlineMs,
      options.extras,
      (value) => {
        count();
        resolve(value as EchoMessage);
      },
      (error) => {
        count();
        reject(error);
      },
    );
  });
  if (!started) {
    settled.delete(key);
    return undefined;
  }
  native.flush();
  promise.catch(() => undefined);
  return promise;
}

const extras = (given: {
  signal?: AbortSignal;
  into?: BlockLease;
  onTrailer?: (m: Metadata) => void;
  metadata?: Metadata;
}): CallExtras =>
  new CallExtras(given.signal, given.metadata && encodeMetadata(given.metadata), given.into, given.onTrailer);

const allOnce = (): void => expect([...settled.values()].every((times) => times === 1)).toBe(true);

beforeEach(() => open());

describe('a call', () => {
  test('is staged with its method, encoded message and time limit', () => {
    call({ text: 'a', number: 7 }, { timeoutMs: 1500 });
    expect(native.submitted).toHaveLength(1);
    const [sent] = native.submitted;
    expect(sent).toMatchObject({ op: SubOp.request, session: 0, call: 0, method: echo.id | 0, bulk: false });
    expect(EchoMessage.decode(sent!.message)).toMatchObject({ text: 'a', number: 7 });
    expect(sent!.timeoutUs).toBeGreaterThan(1_400_000);
    expect(sent!.timeoutUs).toBeLessThanOrEqual(1_500_000);
  });

  test('without a limit says 0, with more than 2^32 us the most there is', () => {
    call({});
    call({}, { timeoutMs: 1e9 });
    expect(native.submitted.map((sent) => sent.timeoutUs)).toEqual([0, 0xffff_ffff]);
  });

  test('resolves with the response, copied out of the receive slab', async () => {
    const promise = call({})!;
    native.deliver({
      kind: EvKind.settled,
      call: 0,
      message: EchoMessage.encode({ payload: Uint8Array.of(1, 2) }),
    });
    new Uint8Array(native.receiveSlab(0)).fill(0xee);
    expect((await promise).payload).toEqual(Uint8Array.of(1, 2));
    expect(done).toBe(1);
    expect(session.inFlight).toBe(0);
  });

  test('settles by its own event whatever the order', async () => {
    const promises = [0, 1, 2, 3].map((i) => call({ number: i })!);
    native.deliver(
      { kind: EvKind.settled, call: 2, message: text('two') },
      { kind: EvKind.failed, call: 1, timeoutUs: Reason.sessionLost, method: Status.UNAVAILABLE, sent: 1 },
      { kind: EvKind.settled, call: 0, message: text('zero') },
    );
    native.deliver({ kind: EvKind.settled, call: 3, message: text('three') });
    const results = await Promise.allSettled(promises);
    expect(results.map((r) => (r.status === 'fulfilled' ? r.value.text : r.reason.code))).toEqual([
      'zero',
      Status.UNAVAILABLE,
      'two',
      'three',
    ]);
    allOnce();
  });

  test.each([
    ['a second response', { kind: EvKind.settled, call: 0, message: text('again') }],
    ['a failure after the response', { kind: EvKind.failed, call: 0, timeoutUs: Reason.cancelled }],
    ['a response for a slot never used', { kind: EvKind.settled, call: 5, message: text('x') }],
    ['a response for a slot out of range', { kind: EvKind.settled, call: 4095, message: text('x') }],
    ['a server event', { kind: EvKind.request, call: 0 }],
  ])('%s changes nothing', async (_, event) => {
    const promise = call({})!;
    native.deliver({ kind: EvKind.settled, call: 0, message: text('first') }, event);
    expect((await promise).text).toBe('first');
    allOnce();
    expect(session.inFlight).toBe(0);
  });

  test('a stray response in a block gives the block back', () => {
    const block = native.allocBlock(100);
    native.deliver({ kind: EvKind.settled, call: 3, message: text('x'), block });
    expect(native.blocks.get(block)!.references).toBe(1);
  });

  test('an error status becomes an RpcError with text, metadata and sent', async () => {
    const trailers: Metadata[] = [];
    const promise = call({}, { extras: extras({ onTrailer: (m) => trailers.push(m) }) })!;
    native.deliver({
      kind: EvKind.settled,
      call: 0,
      method: Status.NOT_FOUND,
      message: Buffer.from('no such key: ä'),
      metadata: encodeMetadata(new Metadata({ hint: 'try b' })),
      sent: 2,
    });
    const error = await promise.catch((e: RpcError) => e);
    expect(error).toMatchObject({ code: Status.NOT_FOUND, rawMessage: 'no such key: ä', sent: 'yes' });
    expect((error as RpcError).metadata.get('hint')).toBe('try b');
    expect(trailers[0]?.get('hint')).toBe('try b');
  });

  test('a status that is none becomes UNKNOWN', async () => {
    const promise = call({})!;
    native.deliver({ kind: EvKind.settled, call: 0, method: 200, sent: 2 });
    await expect(promise).rejects.toMatchObject({ code: Status.UNKNOWN });
  });

  test('a response that does not decode is INTERNAL, sent: yes', async () => {
    const promise = call({})!;
    native.deliver({ kind: EvKind.settled, call: 0, message: Uint8Array.of(0xff) });
    await expect(promise).rejects.toMatchObject({ code: Status.INTERNAL, sent: 'yes' });
    expect(session.inFlight).toBe(0);
  });

  test('malformed metadata beside a good response is ignored', async () => {
    const trailers: Metadata[] = [];
    const promise = call({}, { extras: extras({ onTrailer: (m) => trailers.push(m) }) })!;
    native.deliver({ kind: EvKind.settled, call: 0, metadata: Uint8Array.of(9, 9), message: text('x') });
    expect((await promise).text).toBe('x');
    expect(trailers).toHaveLength(0);
  });

  test('an onTrailer that throws rejects the call, not the process', async () => {
    const broken = extras({
      onTrailer: () => {
        throw new Error('oops');
      },
    });
    const promise = call({}, { extras: broken })!;
    native.deliver({
      kind: EvKind.settled,
      call: 0,
      metadata: encodeMetadata(new Metadata({ k: 'v' })),
      message: text('x'),
    });
    await expect(promise).rejects.toMatchObject({ code: Status.INTERNAL, message: /oops/ });
  });

  test('that cannot be encoded is rejected with sent: no and leaves every slot free', async () => {
    const promise = call({ number: -1 })!;
    await expect(promise).rejects.toMatchObject({
      code: Status.INTERNAL,
      sent: 'no',
      message: /EchoMessage.number/,
    });
    expect(native.submitted).toHaveLength(0);
    expect(native.freeSlotCount).toBe(64);
    expect(session.inFlight).toBe(0);
  });
});

describe('slots', () => {
  test('a full table takes no more, until a call settles', () => {
    open({ inflightMax: 2 });
    call({});
    call({});
    expect(session.full).toBe(true);
    expect(call({})).toBeUndefined();
    native.deliver({ kind: EvKind.settled, call: 1, message: text('') });
    call({});
    expect(native.submitted.map((sent) => sent.call)).toEqual([0, 1, 1]);
  });

  test('without a send slot it takes none, and nothing has happened', () => {
    open({ slots: 2 });
    native.freeAtFlush = false;
    call({});
    call({});
    expect(call({})).toBeUndefined();
    expect(session.inFlight).toBe(2);
    native.releaseSlots();
    expect(call({})).toBeDefined();
  });

  test('sixteen staged submissions are published at once, the rest with the turn', async () => {
    open({ inflightMax: 20 });
    const none = (): void => undefined;
    for (let i = 0; i < 20; ++i) session.start(echo, {}, 0, undefined, none, none);
    expect(native.submitted).toHaveLength(16);
    await Promise.resolve();
    expect(native.submitted).toHaveLength(20);
    expect(native.flushes).toBe(2);
  });
});

describe('giving up', () => {
  test('a signal cancels once, and the promise waits for the event', async () => {
    const controller = new AbortController();
    const promise = call({}, { extras: extras({ signal: controller.signal }) })!;
    controller.abort(new Error('changed my mind'));
    controller.abort();
    expect(native.cancels).toEqual([{ session: 0, call: 0, reason: Reason.cancelled }]);
    expect([...settled.values()]).toEqual([0]);
    native.deliver({ kind: EvKind.failed, call: 0, method: 1, timeoutUs: Reason.cancelled, sent: 1 });
    await expect(promise).rejects.toMatchObject({
      code: Status.CANCELLED,
      sent: 'maybe',
      cause: { message: 'changed my mind' },
    });
  });

  test("the server's answer wins when it is there first", async () => {
    const controller = new AbortController();
    const promise = call({}, { extras: extras({ signal: controller.signal }) })!;
    controller.abort();
    native.deliver({ kind: EvKind.settled, call: 0, message: text('made it') });
    expect((await promise).text).toBe('made it');
    allOnce();
  });

  test('a signal that fires after the end cancels nobody, least of all the next call in that slot', async () => {
    const controller = new AbortController();
    const promise = call({}, { extras: extras({ signal: controller.signal }) })!;
    native.deliver({ kind: EvKind.settled, call: 0, message: text('x') });
    await promise;
    call({});
    controller.abort();
    expect(native.cancels).toHaveLength(0);
  });

  test('publishes a call that is only staged before it cancels it', () => {
    const controller = new AbortController();
    const none = (): void => undefined;
    session.start(echo, {}, 0, extras({ signal: controller.signal }), none, none);
    controller.abort();
    expect(native.submitted).toHaveLength(1);
    expect(native.cancels).toHaveLength(1);
  });

  test('a deadline cancels with its own reason; a signal after it does nothing more', async () => {
    const controller = new AbortController();
    const promise = call({}, { timeoutMs: 5000, extras: extras({ signal: controller.signal }) })!;
    const startMs = deadlines.now;
    deadlines.run(startMs + 4999);
    expect(native.cancels).toHaveLength(0);
    deadlines.run(startMs + 5010);
    expect(native.cancels).toEqual([{ session: 0, call: 0, reason: Reason.deadline }]);
    controller.abort();
    expect(native.cancels).toHaveLength(1);
    native.deliver({ kind: EvKind.failed, call: 0, method: 4, timeoutUs: Reason.deadline, sent: 1 });
    await expect(promise).rejects.toMatchObject({ code: Status.DEADLINE_EXCEEDED, sent: 'maybe' });
  });
});

describe('the end of the session', () => {
  test('comes after its calls have failed', async () => {
    const promises = [call({})!, call({})!];
    native.sessionErrorText = 'peer closed';
    const broken = { kind: EvKind.failed, timeoutUs: Reason.sessionLost, method: 14 };
    native.deliver(
      { ...broken, call: 0, sent: 0 },
      { ...broken, call: 1, sent: 1 },
      { kind: EvKind.sessionDown },
    );
    const errors = (await Promise.allSettled(promises)).map(
      (r) => (r as PromiseRejectedResult).reason as RpcError,
    );
    expect(errors.map((error) => [error.code, error.sent])).toEqual([
      [14, 'no'],
      [14, 'maybe'],
    ]);
    expect(errors[0]!.message).toContain('peer closed');
    expect(lost).toBe(2);
    expect(down).toEqual(['peer closed']);
    allOnce();
  });

  test('settles a call that native code has forgotten', async () => {
    const promise = call({})!;
    native.deliver({ kind: EvKind.sessionDown });
    await expect(promise).rejects.toMatchObject({ code: Status.UNAVAILABLE, sent: 'maybe' });
    native.deliver({ kind: EvKind.settled, call: 0, message: text('late') });
    allOnce();
    expect(down).toHaveLength(1);
  });
});

describe('large messages', () => {
  const large = new Uint8Array(100_000).map((_, i) => i * 7);

  test('leave large values where they are, and are in order plain protobuf', () => {
    const request = { text: 'key', payload: large, number: 5, parts: [large.subarray(1), Uint8Array.of(1)] };
    call(request);
    const [sent] = native.submitted;
    expect(sent!.bulk).toBe(true);
    expect(sent!.message).toEqual(EchoMessage.encode(request));
    expect(sent!.pieces[1]).toBe(large);
    expect(sent!.keys.map((key) => key > 0)).toEqual([false, true, false, true, false]);
    expect(sent!.keys[1]).toBe(sent!.keys[3]);
  });

  test('hold their memory until SENT, then give the block back', () => {
    call({ payload: large });
    expect(native.blocks.size).toBe(1);
    native.deliver({ kind: EvKind.settled, call: 0, message: text('ok') });
    expect(native.blocks.size).toBe(1);
    native.deliver({ kind: EvKind.sent, call: 1 }, { kind: EvKind.sent, call: 1 });
    expect(native.blocks.size).toBe(0);
  });

  test('memory of the arena needs no key', () => {
    const block = native.allocBlock(50_000);
    call({ payload: new Uint8Array(native.blockBuffer(block)) });
    expect(native.submitted[0]!.keys).toEqual([0, 0]);
  });

  test('memory shared between threads is copied', () => {
    const shared = new Uint8Array(new SharedArrayBuffer(50_000)).fill(3);
    call({ payload: shared });
    expect(native.submitted[0]!.keys).toEqual([0, 0]);
    expect(EchoMessage.decode(native.submitted[0]!.message).payload).toEqual(new Uint8Array(50_000).fill(3));
  });

  test('more values than a descriptor list holds are copied into one piece', () => {
    const parts = Array.from({ length: 20 }, (_, i) => new Uint8Array(20_000).fill(i));
    call({ parts });
    expect(native.submitted[0]!.pieces).toHaveLength(1);
    expect(native.submitted[0]!.message).toEqual(EchoMessage.encode({ parts }));
    native.deliver({ kind: EvKind.sent, call: 1 });
    expect(native.blocks.size).toBe(0);
  });

  test('a message that only its bound made look large goes in a slot', () => {
    call({ text: 'x'.repeat(5000) });
    expect(native.submitted[0]).toMatchObject({ bulk: false });
    expect(EchoMessage.decode(native.submitted[0]!.message).text).toHaveLength(5000);
    expect(native.blocks.size).toBe(0);
  });

  test('metadata travels in a slot beside them', () => {
    call({ payload: large }, { extras: extras({ metadata: new Metadata({ k: 'v' }) }) });
    expect(native.submitted[0]!.metadata).toEqual(new Uint8Array(encodeMetadata(new Metadata({ k: 'v' }))));
    expect(native.freeSlotCount).toBe(64);
  });

  test.each([
    [
      'too large for the peer',
      { maxMessageBytes: 50_000 },
      0,
      /100\d{3} bytes, but the server accepts 50000; raise maxMessageBytes/,
    ],
    ['no arena memory here', {}, Reason.noMemory, /arena has no room/],
    ['no registration', {}, Reason.registration, /could not be registered: raise RLIMIT_MEMLOCK/],
  ])('%s: RESOURCE_EXHAUSTED, sent: no, nothing held', async (_, options, refuse, message) => {
    open(options);
    native.refuseBulk = refuse;
    const promise = call({ payload: large }, { extras: extras({ metadata: new Metadata({ k: 'v' }) }) })!;
    await expect(promise).rejects.toMatchObject({ code: Status.RESOURCE_EXHAUSTED, sent: 'no', message });
    expect(native.blocks.size).toBe(0);
    expect(native.freeSlotCount).toBe(64);
    expect(session.inFlight).toBe(0);
  });

  test('a response in a block: large fields are views, its lease returns the block', async () => {
    const promise = call({})!;
    const response = EchoMessage.encode({ payload: large, parts: [Uint8Array.of(1)] });
    const block = native.allocBlock(response.length);
    native.deliver({ kind: EvKind.settled, call: 0, message: response, block });
    native.releaseBlock(block);
    const message = await promise;
    expect(message.payload.buffer).toBe(native.blockBuffer(block));
    expect(message.parts[0]!.buffer).not.toBe(native.blockBuffer(block));
    const lease = leaseOf(message)!;
    expect(lease.bytes).toHaveLength(response.length);
    lease.release();
    lease.release();
    expect(lease.released).toBe(true);
    expect(native.blocks.size).toBe(0);
  });

  test('a response in a block without a large field owns its bytes: the block goes back at once', async () => {
    const promise = call({})!;
    const block = native.allocBlock(100);
    native.deliver({ kind: EvKind.settled, call: 0, message: text('small'), block });
    native.releaseBlock(block);
    expect(leaseOf(await promise)).toBeUndefined();
    expect(native.blocks.size).toBe(0);
  });

  test('a response that does not decode gives its block back', async () => {
    const promise = call({})!;
    const block = native.allocBlock(100);
    native.deliver({ kind: EvKind.settled, call: 0, message: Uint8Array.of(0xff), block });
    native.releaseBlock(block);
    await expect(promise).rejects.toMatchObject({ code: Status.INTERNAL });
    expect(native.blocks.size).toBe(0);
  });

  test("into: the caller's lease is named as the sink and stays the caller's", async () => {
    const block = native.allocBlock(200_000);
    const lease = new BlockLease(native, block, native.blockBuffer(block), 0, 200_000);
    const promise = call({ text: 'x' }, { extras: extras({ into: lease }) })!;
    expect(native.submitted[0]).toMatchObject({ bulk: true, sink: block });
    native.deliver({ kind: EvKind.sent, call: 1 });
    native.deliver({ kind: EvKind.settled, call: 0, message: EchoMessage.encode({ payload: large }), block });
    const message = await promise;
    expect(leaseOf(message)).toBe(lease);
    expect(native.blocks.get(block)!.references).toBe(1);
    lease.release();
    expect(native.blocks.size).toBe(0);
  });
});
