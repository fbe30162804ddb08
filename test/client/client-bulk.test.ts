/**
 * Tests large messages on the client's side, against a scripted native side: the tests check gather entries,
 * keys, and how long each side keeps which memory.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { blockMemory } from '../../runtime/boundary/outgoing/block-stamps.ts';
import { CallDeadlines } from '../../runtime/client/session/call-deadlines.ts';
import { CallExtras } from '../../runtime/client/session/call-extras.ts';
import { BlockLease, leaseOf } from '../../runtime/core/lease.ts';
import { encodeMetadata } from '../../runtime/core/metadata-wire.ts';
import { Metadata, Status } from '../../runtime/index.ts';
import { copiedMemory, EvKind, leasedMemory, Reason } from '../../runtime/native/native.ts';
import { FakeNative } from '../runtime/fake-native.ts';
import { EchoMessage } from '../runtime/gen/echo.rdma.ts';
import { type BedOptions, ClientBed, extras, text } from './client-bed.ts';

let bed: ClientBed;
let native: ClientBed['native'];
let session: ClientBed['session'];

function open(options: BedOptions = {}): void {
  bed = new ClientBed(options);
  ({ native, session } = bed);
}
const call: ClientBed['call'] = (request, options) => bed.call(request, options);

beforeEach(() => open());
afterEach(() => void vi.restoreAllMocks());

describe('large messages', () => {
  const large = new Uint8Array(100_000).map((_, i) => i * 7);

  test('leave large values in place, and are plain protobuf when joined', () => {
    const request = { text: 'key', payload: large, number: 5, parts: [large.subarray(1), Uint8Array.of(1)] };
    call(request);
    const [sent] = native.submitted;
    expect(sent!.bulk).toBe(true);
    expect(Buffer.compare(sent!.message, EchoMessage.encode(request))).toBe(0);
    expect(sent!.gatherEntries[1]).toBe(large);
    expect(sent!.keys.map((key) => key > 0)).toEqual([false, true, false, true, false]);
    expect(sent!.keys[1]).toBe(sent!.keys[3]);
  });

  describe('in memory of the application', () => {
    const request = { payload: large, parts: [large.subarray(1)] };
    const keysOf = (): readonly number[] => native.submitted.at(-1)!.keys.filter((key) => key !== 0);

    test('are copied up to the size that the fabric requires, and then have no key', () => {
      open({ copiedBytes: 201_000 });
      call(request);
      expect(keysOf()).toEqual([copiedMemory, copiedMemory]);
      expect(native.registered).toEqual([]);
      open({ copiedBytes: 199_000 });
      call(request);
      expect(keysOf().every((key) => key > 0)).toBe(true);
    });

    test('are sent in place when the arena has no room for a copy', () => {
      open({ copiedBytes: 201_000 });
      native.refuseCopies = true;
      call(request);
      expect(keysOf().every((key) => key > 0)).toBe(true);
      expect(Buffer.compare(native.submitted[0]!.message, EchoMessage.encode(request))).toBe(0);
    });

    test('are copied the first time when a device would have to register them, and registered when they are sent again', () => {
      open({ newCopiedBytes: 201_000 });
      const payload = new Uint8Array(100_000);
      call({ payload });
      expect(keysOf()).toEqual([copiedMemory]);
      call({ payload });
      expect(keysOf().every((key) => key > 0)).toBe(true);
      const parts = [payload, new Uint8Array(50_000)];
      call({ parts });
      expect(keysOf()).toEqual([expect.any(Number), copiedMemory]);
      call({ payload: new Uint8Array(201_000) });
      expect(keysOf().every((key) => key > 0)).toBe(true);
    });
  });

  test('hold their memory until SENT, and then release the block', () => {
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
    expect(native.submitted[0]!.keys).toEqual([0, leasedMemory]);
  });

  test('a value in a block of the arena is sent by its location, and the block is released with the submission', () => {
    open({ aligned: true });
    const block = native.allocBlock(50_000);
    const payload = new Uint8Array(blockMemory(native, block), 64, 40_000).fill(5);
    call({ payload, number: 5 });
    const [sent] = native.submitted;
    expect(sent!.keys).toEqual([0, leasedMemory, 0]);
    expect(sent!.gatherEntries[1]).toEqual(payload);
    expect([...native.blocks.keys()]).toEqual([block]);
    native.deliver({ kind: EvKind.sent, call: 1 });
    expect([...native.blocks.keys()]).toEqual([block]);
  });

  test('a call that is refused releases the block, too', () => {
    open({ aligned: true });
    const block = native.allocBlock(50_000);
    native.refuseBulk = Reason.tooLarge;
    call({ payload: new Uint8Array(blockMemory(native, block)) });
    expect([...native.blocks.keys()]).toEqual([block]);
  });

  test('calls count as in flight although the stack reached its end right after their submission', async () => {
    const holdsBuffer = vi.spyOn(native, 'holdsBuffer').mockImplementationOnce(() => {
      throw new RangeError('Maximum call stack size exceeded');
    });
    const first = call({ payload: large })!;
    expect(holdsBuffer).toHaveBeenCalledOnce();
    const second = call({ payload: new Uint8Array(50_000), number: 2 })!;
    expect(native.submitted.map((each) => each.call)).toEqual([0, 1]);
    // At this time the end of the first message is also known.
    const { kept } = bed.context.outgoing.bulk;
    expect([kept.sending, kept.registered.length]).toEqual([2, 2]);
    native.deliver(
      { kind: EvKind.sent, call: 1 },
      { kind: EvKind.settled, call: 0, message: text('first') },
      { kind: EvKind.settled, call: 1, message: text('second') },
    );
    expect([(await first).text, (await second).text]).toEqual(['first', 'second']);
    expect(bed.allSettledOnce).toBe(true);
  });

  test.each([
    ['its deadline', () => vi.spyOn(CallDeadlines.prototype, 'set')],
    ['its signal', () => vi.spyOn(CallExtras.prototype, 'watch')],
  ])('of a call for which %s cannot be stored are cancelled, and keep their call slot', async (_, spy) => {
    spy().mockImplementationOnce(() => {
      throw new RangeError('Maximum call stack size exceeded');
    });
    const failed = call({ payload: large }, { timeoutMs: 1000, extras: extras({}) })!;
    await expect(failed).rejects.toThrow('Maximum call stack size exceeded');
    expect(native.cancels).toMatchObject([{ call: 0 }]);
    const next = call({ number: 2 })!;
    native.flush();
    expect(native.submitted.map((each) => each.call)).toEqual([0, 1]);
    native.deliver(
      { kind: EvKind.settled, call: 1, message: text('next') },
      { kind: EvKind.failed, call: 0, reason: Reason.cancelled, processed: 1 },
    );
    expect((await next).text).toBe('next');
    expect(session.inFlight).toBe(0);
  });

  test('memory of another arena is like any other memory', () => {
    open({ aligned: true });
    const other = new FakeNative();
    call({ payload: new Uint8Array(blockMemory(other, other.allocBlock(50_000))) });
    expect(native.submitted[0]!.keys.map((key) => key > 0)).toEqual([false, true]);
  });

  test('memory shared between threads is copied', () => {
    const shared = new Uint8Array(new SharedArrayBuffer(50_000)).fill(3);
    call({ payload: shared });
    expect(native.submitted[0]!.keys).toEqual([0, 0]);
    expect(EchoMessage.decode(native.submitted[0]!.message).payload.every((byte) => byte === 3)).toBe(true);
  });

  test('a value in memory that can be resized is copied, so that it may shrink during the call', () => {
    // TypeScript's library of ES2023 does not have this option yet.
    type Resizing = ArrayBuffer & { resize(bytes: number): void };
    const Resizable = ArrayBuffer as unknown as new (bytes: number, options?: object) => Resizing;
    const memory = new Resizable(50_000, { maxByteLength: 60_000 });
    call({ payload: new Uint8Array(memory).fill(3) });
    memory.resize(0);
    expect(native.submitted[0]!.keys).toEqual([0, 0]);
    const { payload } = EchoMessage.decode(native.submitted[0]!.message);
    expect([payload.length, payload.every((byte) => byte === 3)]).toEqual([50_000, true]);
  });

  test('more values than a descriptor list holds are copied into one gather entry', () => {
    const parts = Array.from({ length: 20 }, (_, i) => new Uint8Array(20_000).fill(i));
    call({ parts });
    expect(native.submitted[0]!.gatherEntries).toHaveLength(1);
    expect(Buffer.compare(native.submitted[0]!.message, EchoMessage.encode({ parts }))).toBe(0);
    native.deliver({ kind: EvKind.sent, call: 1 });
    expect(native.blocks.size).toBe(0);
  });

  test('a message that only looked large by its bound is sent in a slot', () => {
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
      { messageMaxBytes: 50_000 },
      0,
      /100\d{3} bytes, but the server accepts 50000; raise messageMaxBytes/,
    ],
    ['no arena memory here', {}, Reason.noMemory, /arena has no room.*raise arenaBytes \(\d+\)/],
    [
      'no registration',
      {},
      Reason.registration,
      /could not be registered: raise RLIMIT_MEMLOCK, or mrCacheBytes \(\d+\)/,
    ],
  ])('%s: RESOURCE_EXHAUSTED, processed: no, nothing held', async (_, options, refuse, message) => {
    open(options);
    native.refuseBulk = refuse;
    const promise = call({ payload: large }, { extras: extras({ metadata: new Metadata({ k: 'v' }) }) })!;
    await expect(promise).rejects.toMatchObject({
      code: Status.RESOURCE_EXHAUSTED,
      processed: 'no',
      message,
    });
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

  test('a response in a block without a large field has its own bytes, and the block is released at once', async () => {
    const promise = call({})!;
    const block = native.allocBlock(100);
    native.deliver({ kind: EvKind.settled, call: 0, message: text('small'), block });
    native.releaseBlock(block);
    expect(leaseOf(await promise)).toBeUndefined();
    expect(native.blocks.size).toBe(0);
  });

  describe('a response that is an aligned message', () => {
    /** Returns the table and the parts, each on a multiple of 64 bytes. */
    const alignedOf = (...parts: Uint8Array[]): Uint8Array => {
      const table = new Uint8Array(Uint32Array.of(parts.length, ...parts.map((part) => part.length)).buffer);
      return [table, ...parts].reduce((aligned, part) => {
        const at = Math.ceil(aligned.length / 64) * 64;
        const longer = new Uint8Array(at + part.length).fill(0xee);
        longer.set(aligned);
        longer.set(part, at);
        return longer;
      }, new Uint8Array(0));
    };
    const payload = new Uint8Array(5000).fill(7);
    const whole = EchoMessage.encode({ payload, number: 9 });
    const head = whole.length - payload.length - 2;
    const answer = async (aligned: Uint8Array) => {
      const promise = call({})!;
      const block = native.allocBlock(aligned.length);
      native.deliver({ kind: EvKind.settled, call: 0, message: aligned, block, aligned: true });
      native.releaseBlock(block);
      return { result: await promise.catch((error: unknown) => error), block };
    };

    test('its large value is a view that begins on a multiple of 64 bytes', async () => {
      const { result, block } = await answer(
        alignedOf(whole.subarray(0, head), payload, whole.subarray(head + payload.length)),
      );
      const message = result as EchoMessage;
      expect([
        message.payload.buffer === native.blockBuffer(block),
        message.payload.byteOffset,
        message.number,
      ]).toEqual([true, 128, 9]);
      expect(Buffer.compare(message.payload, payload)).toBe(0);
    });

    test.each<[string, Uint8Array, RegExp]>([
      ['that has no table', new Uint8Array(2), /an aligned message without its table/],
      ['whose table is longer than it', new Uint8Array(Uint32Array.of(1000).buffer), /ends in its table/],
      ['whose parts are longer than it', new Uint8Array(Uint32Array.of(1, 1000).buffer), /ends in a segment/],
      [
        'that is cut elsewhere',
        alignedOf(whole.subarray(0, 1), whole.subarray(1)),
        /the response cannot be used/,
      ],
    ])('one %s is an error of its call, and gives its block back', async (_what, aligned, why) => {
      const { result } = await answer(aligned);
      expect(result).toMatchObject({ code: Status.INTERNAL, message: expect.stringMatching(why) });
      expect(native.blocks.size).toBe(0);
    });
  });

  test('a response that cannot be decoded releases its block', async () => {
    const promise = call({})!;
    const block = native.allocBlock(100);
    native.deliver({ kind: EvKind.settled, call: 0, message: Uint8Array.of(0xff), block });
    native.releaseBlock(block);
    await expect(promise).rejects.toMatchObject({ code: Status.INTERNAL });
    expect(native.blocks.size).toBe(0);
  });

  test("into: the caller's lease is named as the reply buffer and stays the caller's", async () => {
    const block = native.allocBlock(200_000);
    const lease = new BlockLease(native, block, native.blockBuffer(block), 0, 200_000);
    const promise = call({ text: 'x' }, { extras: extras({ into: lease }) })!;
    expect(native.submitted[0]).toMatchObject({ bulk: true, replyBuffer: block });
    native.deliver({ kind: EvKind.sent, call: 1 });
    native.deliver({ kind: EvKind.settled, call: 0, message: EchoMessage.encode({ payload: large }), block });
    const message = await promise;
    expect(leaseOf(message)).toBe(lease);
    expect(native.blocks.get(block)!.references).toBe(1);
    lease.release();
    expect(native.blocks.size).toBe(0);
  });

  test.each([
    [undefined, /the request of this call holds most of the arena.*arenaBytes \(\d+\) in configure\(\)/],
    ['lease', /the request of this call holds most of the arena/],
    ['error', /the response needs 9000 bytes, but `into` has only 1000/],
  ] as const)(
    'a response refused because of the call itself names the cause: %s',
    async (overflow, names) => {
      const block = native.allocBlock(1000);
      const into = overflow && new BlockLease(native, block, native.blockBuffer(block), 0, 1000);
      const promise = call({ payload: large }, { extras: extras({ into, intoOverflow: overflow }) })!;
      native.deliver({ kind: EvKind.sent, call: 1 });
      native.deliver({
        kind: EvKind.settled,
        call: 0,
        status: Status.RESOURCE_EXHAUSTED,
        refusedBytes: 9000,
      });
      await expect(promise).rejects.toMatchObject({
        code: Status.RESOURCE_EXHAUSTED,
        processed: 'yes',
        message: expect.stringMatching(names),
      });
    },
  );

  test('into: a lease is for one call at a time', async () => {
    const block = native.allocBlock(1000);
    const lease = new BlockLease(native, block, native.blockBuffer(block), 0, 1000);
    let settle!: () => void;
    const first = new Promise<void>((resolve, reject) => {
      settle = () => reject(new Error('any end'));
      void resolve;
    });
    expect([lease.lend(first), lease.lend(Promise.resolve())]).toEqual([true, false]);
    settle();
    // The code that awaits the call may use the lease in the same microtask.
    await first.catch(() => expect(lease.lend(Promise.resolve())).toBe(true));
  });

  test('into: a lease that was released, or belongs to another fabric, is refused by name', async () => {
    const block = native.allocBlock(1000);
    const lease = new BlockLease(native, block, native.blockBuffer(block), 0, 1000);
    lease.release();
    await expect(call({}, { extras: extras({ into: lease }) })).rejects.toThrow(
      /Echo\/Echo: into: the lease was released before the call was sent/,
    );
    const other = new ClientBed().native;
    const foreign = new BlockLease(other, 1, new ArrayBuffer(8), 0, 8);
    await expect(call({}, { extras: extras({ into: foreign }) })).rejects.toThrow(
      /belongs to another fabric/,
    );
    expect(native.submitted).toHaveLength(0);
  });
});
