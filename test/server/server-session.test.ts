/**
 * Tests the server endpoint against a scripted native side: which requests reach a handler, which do not, and
 * which answers are sent.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import { deadlines } from '../../runtime/boundary/time/deadlines.ts';
import { decodeMetadata, encodeMetadata } from '../../runtime/core/metadata-wire.ts';
import { type HandlerContext, leaseOf, Metadata, RpcError, Status } from '../../runtime/index.ts';
import { EvKind, Reason, SubOp } from '../../runtime/native/native.ts';
import type { FakeEvent } from '../runtime/fake-events.ts';
import type { FakeNative } from '../runtime/fake-native.ts';
import { EchoDefinition, EchoMessage } from '../runtime/gen/echo.rdma.ts';
import { type BedOptions, type EchoHandlers, request, ServerBed } from './server-bed.ts';

let bed: ServerBed;
let native: FakeNative;
let handlerErrors: ServerBed['handlerErrors'];
let down: string[];
const answers = () => bed.answers();

function open(handlers: EchoHandlers, options?: BedOptions): void {
  bed = new ServerBed(handlers, options);
  ({ native, handlerErrors, down } = bed);
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

beforeEach(() => open({ echo: (r) => r }));

describe('a request', () => {
  test('of a sync handler is answered within the callback', () => {
    native.deliver(request());
    expect(native.submitted[0]).toMatchObject({
      op: SubOp.response,
      call: 70001,
      method: Status.OK,
      timeoutUs: 0,
    });
    expect(answers()[0]!.text).toBe('hi');
  });

  test('of an async handler is answered when it is done', async () => {
    let finish: (() => void) | undefined;
    open({ echo: (r) => new Promise((resolve) => (finish = () => resolve(r))) });
    native.deliver(request());
    expect(native.submitted).toHaveLength(0);
    finish?.();
    await turn();
    expect(answers()).toMatchObject([{ status: Status.OK, text: 'hi' }]);
  });

  test('reaches a method of a class instance with its this', () => {
    class Service {
      readonly prefix = 'dear ';
      echo(r: EchoMessage): { text: string } {
        return { text: this.prefix + r.text };
      }
    }
    open(new Service());
    native.deliver(request());
    expect(answers()[0]!.text).toBe('dear hi');
  });

  test('in a block has large fields that are views under a lease', () => {
    const seen: (number | undefined)[] = [];
    open({
      echo: (r) => {
        seen.push(r.payload.length, leaseOf(r)?.bytes.length);
        leaseOf(r)?.release();
        return {};
      },
    });
    const block = native.allocBlock(20_000);
    const message = EchoMessage.encode({ payload: new Uint8Array(10_000) });
    native.deliver(request({ message, block }));
    native.releaseBlock(block);
    expect(seen).toEqual([10_000, message.length]);
    expect(native.blocks.size).toBe(0);
  });

  test.each<[string, Partial<FakeEvent>, number, RegExp]>([
    [
      'for a method without a handler',
      { method: EchoDefinition.methods.missing.id | 0 },
      Status.UNIMPLEMENTED,
      /test.echo.Echo\/Missing is not implemented/,
    ],
    ['for an unknown method id', { method: -5 }, Status.UNIMPLEMENTED, /method id 4294967291/],
    ['that does not decode', { message: Uint8Array.of(0xff) }, Status.INTERNAL, /cannot be decoded/],
    [
      'with malformed metadata',
      { metadata: Uint8Array.of(0) },
      Status.INTERNAL,
      /malformed metadata: an empty metadata key/,
    ],
  ])('%s is refused, marked as not run', (_, event, status, text) => {
    const block = native.allocBlock(100);
    native.deliver(request({ ...event, block }));
    native.releaseBlock(block);
    expect(answers()).toMatchObject([
      { call: 70001, status, notRun: true, text: expect.stringMatching(text) },
    ]);
    expect(native.blocks.size).toBe(0);
  });

  test('whose deadline passed while an earlier request of its batch was handled is never run', () => {
    const ran: string[] = [];
    open({
      echo: (r) => {
        ran.push(r.text);
        const endMs = performance.now() + 5;
        while (performance.now() < endMs);
        return r;
      },
    });
    const named = (text: string, timeoutUs: number): FakeEvent =>
      request({ message: EchoMessage.encode({ text }), timeoutUs });
    native.deliver(
      named('first', 1000),
      named('late', 1000),
      named('in time', 60_000_000),
      named('unlimited', 0),
    );
    expect(ran).toEqual(['first', 'in time', 'unlimited']);
    expect(answers()[1]).toMatchObject({ status: Status.DEADLINE_EXCEEDED, notRun: true });
  });
});

describe('an error', () => {
  test('that is an RpcError is sent with its code, text and metadata', () => {
    open({
      echo: (_, context) => {
        context.trailer.set('a', '1');
        throw new RpcError(Status.NOT_FOUND, 'no such thing', { trailer: new Metadata({ b: '2' }) });
      },
    });
    native.deliver(request());
    const [answer] = answers();
    expect(answer).toMatchObject({ status: Status.NOT_FOUND, notRun: false, text: 'no such thing' });
    expect([...decodeMetadata(answer!.metadata, 0, answer!.metadata.length)]).toEqual([
      ['a', '1'],
      ['b', '2'],
    ]);
    expect(handlerErrors).toHaveLength(0);
  });

  test.each<[string, EchoHandlers['echo']]>([
    [
      'thrown',
      () => {
        throw new Error('password is 1234');
      },
    ],
    ['of a promise', () => Promise.reject(new Error('password is 1234'))],
    ['that is no Error', () => Promise.reject('password is 1234')],
  ])('%s is INTERNAL without its text; the hook gets it', async (_, echo) => {
    open({ echo });
    native.deliver(request());
    await turn();
    expect(answers()).toMatchObject([
      { status: Status.INTERNAL, notRun: false, text: 'test.echo.Echo/Echo: the handler failed' },
    ]);
    expect(String(handlerErrors[0]![0])).toContain('password');
    expect(handlerErrors[0]![1]).toBe('test.echo.Echo/Echo');
  });

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['a wrong type', { number: 'seven' }],
  ])('in the response (%s) is INTERNAL, and the slots are free', (_, response) => {
    open({ echo: () => response as object });
    native.deliver(request());
    expect(answers()).toMatchObject([{ status: Status.INTERNAL }]);
    expect(handlerErrors).toHaveLength(1);
    expect(native.freeSlotCount).toBe(64);
  });

  test('has a text of at most 1 KiB, which is cut between characters', () => {
    open({
      echo: () => {
        throw new RpcError(Status.ABORTED, `x${'ä'.repeat(1000)}`);
      },
    });
    native.deliver(request());
    expect(answers()[0]!.text).toBe(`x${'ä'.repeat(511)}`);
  });

  test('for a response larger than the client accepts names the option', () => {
    open({ echo: () => ({ payload: new Uint8Array(3000) }) }, { messageMaxBytes: 2000 });
    native.deliver(request());
    expect(answers()).toMatchObject([
      {
        status: Status.RESOURCE_EXHAUSTED,
        text: expect.stringMatching(/3003 bytes, but the client accepts 2000; raise messageMaxBytes/),
      },
    ]);
  });

  test('for a response larger than the arena names the option', () => {
    const bytes = native.arenaBytes + 1;
    open(
      { echo: () => ({ payload: new Uint8Array(new SharedArrayBuffer(bytes)) }) },
      { messageMaxBytes: 2 * bytes },
    );
    native.deliver(request());
    expect(answers()).toMatchObject([
      { status: Status.RESOURCE_EXHAUSTED, text: expect.stringMatching(/raise arenaBytes/) },
    ]);
  });
});

describe('the context', () => {
  const withContext = (look: (context: HandlerContext) => void): void =>
    open({
      echo: (r, context) => {
        look(context);
        return r;
      },
    });

  test('has the method, the peer, the metadata and the remaining time', () => {
    const seen: unknown[] = [];
    withContext((context) =>
      seen.push(context.method, String(context.peer), context.metadata.get('k'), context.timeoutMs()),
    );
    native.deliver(request({ metadata: encodeMetadata(new Metadata({ k: 'v' })), timeoutUs: 2_000_000 }));
    expect(seen.slice(0, 3)).toEqual(['test.echo.Echo/Echo', 'alice', 'v']);
    expect(seen[3]).toBeGreaterThan(1900);
    expect(seen[3]).toBeLessThanOrEqual(2000);
  });

  test('has empty metadata and an undefined limit when the request has neither', () => {
    const seen: unknown[] = [];
    withContext((context) => seen.push(context.metadata.size, context.timeoutMs()));
    native.deliver(request());
    expect(seen).toEqual([0, undefined]);
  });

  test('metadata stays readable after the callback', async () => {
    let kept: HandlerContext | undefined;
    withContext((context) => {
      kept = context;
    });
    native.deliver(request({ metadata: encodeMetadata(new Metadata({ k: 'v' })) }));
    new Uint8Array(native.receiveWindow(0)).fill(0);
    await turn();
    expect(kept?.metadata.get('k')).toBe('v');
  });

  test('sends the trailer with the response', () => {
    withContext((context) => void context.trailer.set('took', '5'));
    native.deliver(request());
    const [answer] = answers();
    expect(decodeMetadata(answer!.metadata, 0, answer!.metadata.length).get('took')).toBe('5');
  });

  test.each([
    ['cancelled', { kind: EvKind.cancelled, call: 70001, status: Status.CANCELLED }, Status.CANCELLED],
    [
      'out of time',
      { kind: EvKind.cancelled, call: 70001, status: Status.DEADLINE_EXCEEDED },
      Status.DEADLINE_EXCEEDED,
    ],
    ['lost', { kind: EvKind.sessionDown }, Status.CANCELLED],
  ])(
    'fires its signal when the call is %s; the answer goes nowhere or is dropped',
    async (_, event, code) => {
      const signals: AbortSignal[] = [];
      open({
        echo: (r, context) => {
          signals.push(context.signal);
          return new Promise((resolve) => context.signal.addEventListener('abort', () => resolve(r)));
        },
      });
      native.deliver(request());
      native.deliver({ ...event, call: 70002 }, event);
      await turn();
      expect(signals[0]!.aborted).toBe(true);
      expect(signals[0]!.reason).toMatchObject({ code });
    },
  );

  test('fires its signal when the deadline of the client passes here first: the call is answered with that, and not with what the handler gives then', async () => {
    open({
      echo: (r, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(r))),
    });
    native.deliver(request({ timeoutUs: 5_000_000 }));
    deadlines.run(deadlines.now + 4_900);
    await turn();
    expect(answers()).toEqual([]);
    deadlines.run(deadlines.now + 1_000);
    await turn();
    const text = 'test.echo.Echo/Echo: the deadline passed';
    expect(answers()).toMatchObject([{ status: Status.DEADLINE_EXCEEDED, notRun: false, text }]);
    expect(handlerErrors).toEqual([]);
    expect(bed.session.busy).toBe(false);
  });

  test('has an aborted signal when it is first asked for after the cancel', async () => {
    let kept: HandlerContext | undefined;
    open({
      echo: (_, context) => {
        kept = context;
        return new Promise(() => undefined);
      },
    });
    native.deliver(request());
    native.deliver({ kind: EvKind.cancelled, call: 70001, status: Status.CANCELLED });
    expect(kept?.signal.aborted).toBe(true);
  });
});

describe('without a free send slot', () => {
  test('answers wait, and go out in order when slots are free again', () => {
    open({ echo: (r) => r }, { slots: 1 });
    native.freeAtFlush = false;
    const named = (call: number): FakeEvent =>
      request({ call, message: EchoMessage.encode({ text: `${call}` }) });
    native.deliver(named(1), named(2), { ...named(3), method: 5 });
    expect(answers().map((answer) => answer.call)).toEqual([1]);
    native.freeAtFlush = true;
    native.releaseSlots();
    native.deliver({ kind: EvKind.slotsFree });
    expect(answers().map((answer) => answer.call)).toEqual([1, 2, 3]);
  });

  test('nothing is sent after the end of the session', async () => {
    open({ echo: (r) => Promise.resolve(r) });
    native.deliver(request(), { kind: EvKind.sessionDown });
    await turn();
    expect(native.submitted).toHaveLength(0);
    expect(down).toEqual(['gone']);
  });
});

test('a response whose buffer is being registered waits until its deadline, which is not an exhausted resource', () => {
  open({ echo: () => ({ payload: new Uint8Array(20_000) }) });
  native.refuseBulk = Reason.registering;
  native.deliver(request({ timeoutUs: 5_000_000 }));
  expect(answers()).toEqual([]);
  deadlines.run(deadlines.now + 4_999);
  native.flush();
  const text = expect.stringMatching(/waited for a large buffer to be registered/);
  expect(answers()).toMatchObject([{ status: Status.DEADLINE_EXCEEDED, text }]);
});
