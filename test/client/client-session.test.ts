/**
 * Tests the client's call table against a scripted native side. In every order of events, each call settles
 * exactly once.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import { deadlines } from '../../runtime/boundary/time/deadlines.ts';
import { BlockLease } from '../../runtime/core/lease.ts';
import { encodeMetadata } from '../../runtime/core/metadata-wire.ts';
import { Metadata, type RpcError, Status } from '../../runtime/index.ts';
import { EvKind, PendingRelease, Reason, SubOp } from '../../runtime/native/native.ts';
import { EchoMessage } from '../runtime/gen/echo.rdma.ts';
import { type BedOptions, ClientBed, echo, extras, text } from './client-bed.ts';

let bed: ClientBed;
let native: ClientBed['native'];
let session: ClientBed['session'];

function open(options: BedOptions = {}): void {
  bed = new ClientBed(options);
  ({ native, session } = bed);
}
const call: ClientBed['call'] = (request, options) => bed.call(request, options);

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

  test('without a limit has 0, and more than 2^32 us become the maximum', () => {
    call({});
    call({}, { timeoutMs: 1e9 });
    expect(native.submitted.map((sent) => sent.timeoutUs)).toEqual([0, 0xffff_ffff]);
  });

  test('resolves with the response, copied out of the receive memory', async () => {
    const promise = call({})!;
    native.deliver({
      kind: EvKind.settled,
      call: 0,
      message: EchoMessage.encode({ payload: Uint8Array.of(1, 2) }),
    });
    new Uint8Array(native.receiveWindow(0)).fill(0xee);
    expect((await promise).payload).toEqual(Uint8Array.of(1, 2));
    expect(bed.done).toBe(1);
    expect(session.inFlight).toBe(0);
  });

  test('settles by its own event in any order', async () => {
    const promises = [0, 1, 2, 3].map((i) => call({ number: i })!);
    native.deliver(
      { kind: EvKind.settled, call: 2, message: text('two') },
      { kind: EvKind.failed, call: 1, reason: Reason.sessionLost, processed: 1 },
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
    expect(bed.allSettledOnce).toBe(true);
  });

  test.each([
    ['a second response', { kind: EvKind.settled, call: 0, message: text('again') }],
    ['a failure after the response', { kind: EvKind.failed, call: 0, reason: Reason.cancelled }],
    ['a response for a slot never used', { kind: EvKind.settled, call: 5, message: text('x') }],
    ['a response for a slot out of range', { kind: EvKind.settled, call: 4095, message: text('x') }],
    ['a server event', { kind: EvKind.request, call: 0 }],
  ])('%s changes nothing', async (_, event) => {
    const promise = call({})!;
    native.deliver({ kind: EvKind.settled, call: 0, message: text('first') }, event);
    expect((await promise).text).toBe('first');
    expect(bed.allSettledOnce).toBe(true);
    expect(session.inFlight).toBe(0);
  });

  test('a response in a block for an unknown call releases the block', () => {
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
      status: Status.NOT_FOUND,
      message: Buffer.from('no such key: ä'),
      metadata: encodeMetadata(new Metadata({ hint: 'try b' })),
      processed: 2,
    });
    const error = await promise.catch((e: RpcError) => e);
    expect(error).toMatchObject({ code: Status.NOT_FOUND, rawMessage: 'no such key: ä', processed: 'yes' });
    expect((error as RpcError).trailer.get('hint')).toBe('try b');
    expect(trailers[0]?.get('hint')).toBe('try b');
  });

  test('an unknown status becomes UNKNOWN', async () => {
    const promise = call({})!;
    native.deliver({ kind: EvKind.settled, call: 0, status: 200, processed: 2 });
    await expect(promise).rejects.toMatchObject({ code: Status.UNKNOWN });
  });

  test('a response that does not decode is INTERNAL, processed: yes', async () => {
    const promise = call({})!;
    native.deliver({ kind: EvKind.settled, call: 0, message: Uint8Array.of(0xff) });
    await expect(promise).rejects.toMatchObject({ code: Status.INTERNAL, processed: 'yes' });
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

  test('that cannot be encoded is rejected with processed: no and leaves every slot free', async () => {
    const promise = call({ number: -1 })!;
    await expect(promise).rejects.toMatchObject({
      code: Status.INTERNAL,
      processed: 'no',
      message: /EchoMessage.number/,
    });
    expect(native.submitted).toHaveLength(0);
    expect(native.freeSlotCount).toBe(64);
    expect(session.inFlight).toBe(0);
  });
});

describe('slots', () => {
  test('a full table accepts no more calls until a call settles', () => {
    open({ inflightMax: 2 });
    call({});
    call({});
    expect(session.full).toBe(true);
    expect(call({})).toBeUndefined();
    native.deliver({ kind: EvKind.settled, call: 1, message: text('') });
    call({});
    expect(native.submitted.map((sent) => sent.call)).toEqual([0, 1, 1]);
  });

  test('a session without a send slot accepts no call, and has no side effect', () => {
    open({ slots: 2 });
    native.freeAtFlush = false;
    call({});
    call({});
    expect(call({})).toBeUndefined();
    expect(session.inFlight).toBe(2);
    native.releaseSlots();
    expect(call({})).toBeDefined();
  });

  test('sixteen staged submissions are published at once, and the rest after the iteration', async () => {
    open({ inflightMax: 20 });
    const none = (): void => undefined;
    for (let i = 0; i < 20; ++i) session.start(echo, {}, 0, undefined, none);
    expect(native.submitted).toHaveLength(16);
    await Promise.resolve();
    expect(native.submitted).toHaveLength(20);
    expect(native.flushes).toBe(2);
  });
});

describe('giving up', () => {
  test('a signal cancels the call once, and the promise waits for the event', async () => {
    const controller = new AbortController();
    const promise = call({}, { extras: extras({ signal: controller.signal }) })!;
    controller.abort(new Error('changed my mind'));
    controller.abort();
    expect(native.cancels).toEqual([{ session: 0, call: 0, reason: Reason.cancelled }]);
    expect(bed.settled).toEqual([0]);
    native.deliver({ kind: EvKind.failed, call: 0, reason: Reason.cancelled, processed: 1 });
    await expect(promise).rejects.toMatchObject({
      code: Status.CANCELLED,
      processed: 'maybe',
      cause: { message: 'changed my mind' },
    });
  });

  test("the server's response wins when it arrives first", async () => {
    const controller = new AbortController();
    const promise = call({}, { extras: extras({ signal: controller.signal }) })!;
    controller.abort();
    native.deliver({ kind: EvKind.settled, call: 0, message: text('made it') });
    expect((await promise).text).toBe('made it');
    expect(bed.allSettledOnce).toBe(true);
  });

  test('a signal that fires after the end cancels no call, not even the next call in that slot', async () => {
    const controller = new AbortController();
    const promise = call({}, { extras: extras({ signal: controller.signal }) })!;
    native.deliver({ kind: EvKind.settled, call: 0, message: text('x') });
    await promise;
    call({});
    controller.abort();
    expect(native.cancels).toHaveLength(0);
  });

  test('a call that is only staged is published before it is cancelled', () => {
    const controller = new AbortController();
    const none = (): void => undefined;
    session.start(echo, {}, 0, extras({ signal: controller.signal }), none);
    controller.abort();
    expect(native.submitted).toHaveLength(1);
    expect(native.cancels).toHaveLength(1);
  });

  test('a deadline cancels with its own reason, and a later signal has no effect', async () => {
    const controller = new AbortController();
    const promise = call({}, { timeoutMs: 5000, extras: extras({ signal: controller.signal }) })!;
    const startMs = deadlines.now;
    deadlines.run(startMs + 4999);
    expect(native.cancels).toHaveLength(0);
    deadlines.run(startMs + 5010);
    expect(native.cancels).toEqual([{ session: 0, call: 0, reason: Reason.deadline }]);
    controller.abort();
    expect(native.cancels).toHaveLength(1);
    native.deliver({ kind: EvKind.failed, call: 0, reason: Reason.deadline, processed: 1 });
    await expect(promise).rejects.toMatchObject({ code: Status.DEADLINE_EXCEEDED, processed: 'maybe' });
  });
});

describe('a call that is pending release after its end', () => {
  const held = {
    kind: EvKind.failed,
    call: 0,
    reason: Reason.deadline,
    processed: 1,
    held: PendingRelease.slot,
  };

  test('settles at once, and its call slot is free when the server has answered', async () => {
    open({ inflightMax: 1 });
    const promise = call({})!;
    native.deliver(held);
    await expect(promise).rejects.toMatchObject({ code: Status.DEADLINE_EXCEEDED, processed: 'maybe' });
    expect([session.inFlight, session.held, session.full]).toEqual([0, 1, true]);
    expect(call({})).toBeUndefined();
    native.deliver({ kind: EvKind.released, call: 0 });
    expect([session.inFlight, session.held, session.full]).toEqual([0, 0, false]);
    const next = call({})!;
    native.deliver({ kind: EvKind.settled, call: 0, message: text('next') });
    expect((await next).text).toBe('next');
    expect(bed.allSettledOnce).toBe(true);
  });

  test('notifies waiting calls of the free slot', () => {
    call({});
    native.deliver(held);
    const { done } = bed;
    native.deliver({ kind: EvKind.released, call: 0 });
    expect(bed.done).toBe(done + 1);
  });

  test('does not settle again with its session', async () => {
    const promise = call({})!;
    native.deliver(held);
    await expect(promise).rejects.toMatchObject({ code: Status.DEADLINE_EXCEEDED });
    native.deliver({ kind: EvKind.released, call: 0 }, { kind: EvKind.sessionDown });
    expect(bed.allSettledOnce).toBe(true);
    expect(session.held).toBe(0);
  });

  test.each([PendingRelease.slot, PendingRelease.slot | PendingRelease.replyBuffer])(
    'loses its lease only when the server may write to it: %i',
    async (what) => {
      const block = native.allocBlock(100_000, 0);
      const into = new BlockLease(native, block, native.blockBuffer(block), 0, 100_000);
      const promise = call({}, { extras: extras({ into }) })!;
      native.deliver({ ...held, method: what });
      const lost = what !== PendingRelease.slot;
      await expect(promise).rejects.toThrow(lost ? 'the lease is released' : 'the deadline passed');
      expect(into.released).toBe(lost);
      expect(native.taken).toEqual(lost ? [block] : []);
    },
  );

  test.each([true, false])(
    'a lease that was given back is empty, whether it was looked at before (%s) or not',
    (before) => {
      const block = native.allocBlock(1000, 0);
      const buffer = native.blockBuffer(block);
      const into = new BlockLease(native, block, buffer, 0, 1000);
      const bytes = before ? into.bytes : undefined;
      into.release();
      expect([into.bytes.byteLength, into.released]).toEqual([0, true]);
      if (bytes !== undefined) expect(into.bytes).toBe(bytes);
      into.release();
      expect(native.taken).toEqual([block]);
    },
  );
});

describe('the end of the session', () => {
  test('comes after its calls have failed', async () => {
    const promises = [call({})!, call({})!];
    native.sessionErrorText = 'peer closed';
    const broken = { kind: EvKind.failed, reason: Reason.sessionLost };
    native.deliver(
      { ...broken, call: 0, processed: 0 },
      { ...broken, call: 1, processed: 1 },
      { kind: EvKind.sessionDown },
    );
    const errors = (await Promise.allSettled(promises)).map(
      (r) => (r as PromiseRejectedResult).reason as RpcError,
    );
    expect(errors.map((error) => [error.code, error.processed])).toEqual([
      [14, 'no'],
      [14, 'maybe'],
    ]);
    expect(errors[0]!.message).toContain('peer closed');
    expect(bed.lost).toBe(1);
    expect(bed.down).toEqual(['peer closed']);
    expect(bed.allSettledOnce).toBe(true);
  });

  /**
   * An earlier event of the same batch has begun a call. The call is staged, and native code never sends it.
   */
  function endWithCallsBegunInItsBatch(count: number): Promise<unknown>[] {
    const begun: Promise<unknown>[] = [];
    bed.onDone = () => {
      while (begun.length < count) begun.push(call({ number: begun.length }, { publish: false })!);
    };
    call({})!;
    native.deliver(
      { kind: EvKind.settled, call: 0, message: text('an answer') },
      { kind: EvKind.sessionDown },
    );
    return begun;
  }

  test.each([1, 20])('%i calls staged in the batch that brings it were not sent', async (count) => {
    open({ inflightMax: 32 });
    const begun = endWithCallsBegunInItsBatch(count);
    expect(begun).toHaveLength(count);
    for (const promise of begun) {
      await expect(promise).rejects.toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    }
    expect(bed.allSettledOnce).toBe(true);
  });

  test('a call staged in the batch that brings it may be made once more', () => {
    bed.requeues = true;
    endWithCallsBegunInItsBatch(1);
    expect(bed.lost).toBe(1);
    expect(bed.requeued).toMatchObject([{ request: { number: 0 } }]);
  });

  test('settles a call that native code has forgotten', async () => {
    const promise = call({})!;
    native.deliver({ kind: EvKind.sessionDown });
    await expect(promise).rejects.toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
    native.deliver({ kind: EvKind.settled, call: 0, message: text('late') });
    expect(bed.allSettledOnce).toBe(true);
    expect(bed.down).toHaveLength(1);
  });
});
