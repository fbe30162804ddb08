/**
 * Tests the option `requestMemory: 'call'` of a server: the time at which the memory of a large request is
 * released, and the code that must not read it later.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createClient, createServer, type Interceptor, leaseOf, stats } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { deadlines } from '../../runtime/boundary/time/deadlines.ts';
import { EvKind, Reason } from '../../runtime/native/native.ts';
import { turn, until } from '../outcomes.ts';
import type { FakeEvent } from '../runtime/fake-events.ts';
import { EchoDefinition, EchoMessage } from '../runtime/gen/echo.rdma.ts';
import { openWorld, type Way, type World } from '../runtime/world.ts';
import { type EchoHandlers, request, ServerBed } from './server-bed.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/**
 * Starts a server with these handlers that has received a request with a large value. `held` says whether the
 * request's memory is held.
 */
function asked(
  echo: NonNullable<EchoHandlers['echo']>,
  {
    leasesEnd = true,
    slots = 64,
    interceptors = [] as Interceptor[],
    event = {} as Partial<FakeEvent>,
    before = (_: ServerBed) => {},
  } = {},
) {
  const bed = new ServerBed({ echo }, { slots, interceptors });
  bed.session.leasesEnd = leasesEnd;
  before(bed);
  const { native } = bed;
  const block = native.allocBlock(20_000);
  const message = EchoMessage.encode({ payload: new Uint8Array(10_000) });
  native.deliver(request({ message, block, ...event }));
  native.releaseBlock(block);
  return { bed, native, held: () => native.blocks.has(block) };
}

/** Returns a handler that finishes when the test calls a function. */
function slow() {
  const ends = { resolve: (_: EchoMessage) => {}, reject: (_: Error) => {} };
  const echo = () => new Promise<EchoMessage>((resolve, reject) => Object.assign(ends, { resolve, reject }));
  return { echo, ends };
}
const answer = EchoMessage.create({ text: 'done' });
const endings: [string, (ends: ReturnType<typeof slow>['ends']) => void][] = [
  ['answers', ({ resolve }) => resolve(answer)],
  ['fails', ({ reject }) => reject(new Error('no'))],
];

describe('the memory of a request', () => {
  test('is kept by its lease when the option is not set', () => {
    expect(asked(() => ({ text: 'done' }), { leasesEnd: false }).held()).toBe(true);
  });

  test.each<[string, EchoHandlers['echo']]>([
    ['answers', () => ({ text: 'done' })],
    ['answers with what it got', (r) => ({ text: `${r.payload.length}` })],
    [
      'throws',
      () => {
        throw new Error('no');
      },
    ],
    [
      'has given it back itself',
      (r) => {
        leaseOf(r)?.release();
        return {};
      },
    ],
  ])('is freed when the handler %s', (_, echo) => {
    let lease: ReturnType<typeof leaseOf>;
    const { held, bed } = asked((r, context) => {
      lease = leaseOf(r);
      return echo!(r, context);
    });
    expect(held()).toBe(false);
    expect(lease?.released).toBe(true);
    expect(bed.answers()).toHaveLength(1);
  });

  test.each(endings)('is freed when an asynchronous handler %s, not before', async (_, end) => {
    const { echo, ends } = slow();
    const { held } = asked(echo);
    await turn();
    expect(held()).toBe(true);
    end(ends);
    await turn();
    expect(held()).toBe(false);
  });

  test.each(endings)('is kept while a handler reads it after its deadline, until it %s', async (_, end) => {
    const { echo, ends } = slow();
    const { held, bed } = asked(
      (_r, { signal }) => {
        signal.addEventListener('abort', () => undefined);
        return echo();
      },
      { event: { timeoutUs: 5_000_000 } },
    );
    deadlines.run(deadlines.now + 6_000);
    await turn();
    expect(bed.answers()).toHaveLength(1);
    expect(held()).toBe(true);
    end(ends);
    await turn();
    expect(held()).toBe(false);
  });

  test.each<[string, FakeEvent]>([
    ['cancelled', { kind: EvKind.cancelled, call: 70001 }],
    ['lost with its connection', { kind: EvKind.sessionDown }],
  ])('stays while a handler reads it whose call is %s', async (_, event) => {
    const { echo, ends } = slow();
    const { held, native } = asked(echo);
    native.deliver(event);
    await turn();
    expect(held()).toBe(true);
    ends.resolve(answer);
    await turn();
    expect(held()).toBe(false);
  });

  describe('of a handler within interceptors', () => {
    const early: Interceptor = (next) => (call) =>
      Promise.race([next(call), Promise.reject(new Error('too slow'))]);

    test.each(endings)('that no longer wait for the handler is kept until it %s', async (_, end) => {
      const { echo, ends } = slow();
      const { held, bed } = asked(echo, { interceptors: [early] });
      await turn();
      expect(bed.answers()).toHaveLength(1);
      expect(held()).toBe(true);
      end(ends);
      await turn();
      expect(held()).toBe(false);
    });

    test('is kept until the last handler has ended when next() was called more than once', async () => {
      const both = [slow(), slow()];
      let calls = 0;
      const twice: Interceptor = (next) => (call) => Promise.race([next(call), next(call)]);
      const { held, bed } = asked(() => both[calls++]!.echo(), { interceptors: [twice] });
      await turn();
      both[1]!.ends.resolve(answer);
      await turn();
      expect(bed.answers()).toHaveLength(1);
      expect(held()).toBe(true);
      both[0]!.ends.resolve(answer);
      await turn();
      expect(held()).toBe(false);
    });

    test('is freed with the answer of an interceptor that has called no handler, and no handler is called later', async () => {
      let later: (() => Promise<unknown>) | undefined;
      let handled = 0;
      const cached: Interceptor = (next) => async (call) => {
        later = () => next(call);
        throw new Error('from the cache');
      };
      const { held } = asked(() => ({ text: `${++handled}` }), { interceptors: [cached] });
      await turn();
      expect(held()).toBe(false);
      await expect(later!()).rejects.toThrow(
        /Echo: an interceptor called next\(\) when it had answered already/,
      );
      expect(handled).toBe(0);
    });
  });

  describe('with an answer that has no send slot yet', () => {
    /** The answer of another call takes the only slot. */
    const waiting = () =>
      asked((r) => ({ payload: r.payload.subarray(0, 100) }), {
        slots: 1,
        before: ({ native }) => {
          native.freeAtFlush = false;
          native.deliver(request({ call: 70002 }));
        },
      });

    test('stays until the answer has been sent', () => {
      const { held, native, bed } = waiting();
      expect(held()).toBe(true);
      native.freeAtFlush = true;
      native.releaseSlots();
      native.deliver({ kind: EvKind.slotsFree });
      expect(bed.answers()).toHaveLength(2);
      expect(held()).toBe(false);
    });

    test('is freed at the end of the connection', () => {
      const { held, native } = waiting();
      native.deliver({ kind: EvKind.sessionDown });
      expect(held()).toBe(false);
    });
  });

  describe('with an answer that waits for memory', () => {
    const waiting = () =>
      asked(() => ({ payload: new Uint8Array(20_000) }), {
        event: { timeoutUs: 5_000_000 },
        before: ({ native }) => {
          native.refuseBulk = Reason.registering;
        },
      });

    test.each<[string, (way: ReturnType<typeof waiting>) => void]>([
      [
        'it has been sent',
        ({ native }) => {
          native.refuseBulk = 0;
          native.deliver({ kind: EvKind.memoryFree });
        },
      ],
      ['its time is up', () => deadlines.run(deadlines.now + 4_999)],
      [
        'it cannot be sent',
        ({ native }) => {
          native.refuseBulk = Reason.detached;
          native.deliver({ kind: EvKind.memoryFree });
        },
      ],
      ['its caller has given up', ({ native }) => native.deliver({ kind: EvKind.cancelled, call: 70001 })],
      ['the connection has ended', ({ native }) => native.deliver({ kind: EvKind.sessionDown })],
    ])('stays until %s', (_, end) => {
      const way = waiting();
      expect(way.held()).toBe(true);
      end(way);
      expect(way.held()).toBe(false);
    });
  });

  // If the request stayed, the answer would wait for itself when both do not fit.
  test('may be collected while an answer that does not contain it waits for memory', async () => {
    let received: WeakRef<object> | undefined;
    const { native } = asked(
      (r) => {
        received = new WeakRef(r);
        return { payload: new Uint8Array(20_000) };
      },
      {
        before: ({ native }) => {
          native.refuseBulk = Reason.noMemory;
        },
      },
    );
    expect(native.submitted).toEqual([]);
    for (let i = 0; i < 10 && received!.deref() !== undefined; ++i) {
      await turn();
      collect();
    }
    expect(received!.deref()).toBeUndefined();
  });

  test('is freed when the response is refused because of its length', () => {
    const { held, bed } = asked(() => ({ payload: new Uint8Array(2_000_000) }));
    expect(bed.answers()).toMatchObject([{ text: expect.stringMatching(/messageMaxBytes/) }]);
    expect(held()).toBe(false);
  });
});

describe.each<Way>(['in process', 'in process, loopback', 'shm over unix', 'tcp'])('%s', (way) => {
  let world: World;
  afterEach(() => world.close());

  test('requests that are sent back arrive unchanged, and no block of the arena stays leased', async () => {
    world = await openWorld(way, { requestMemory: 'call' });
    const client = createClient(EchoDefinition, world.channel);
    await world.channel.ready();
    const leased = stats().arenaLeasedBlocks;
    const caller = async (number: number): Promise<void> => {
      for (let i = 0; i < 40; ++i) {
        const payload = new Uint8Array(40_000 + 5_000 * i).fill(number * 40 + i);
        const come = await client.echo({ payload });
        expect(Buffer.compare(come.payload, payload)).toBe(0);
        leaseOf(come)?.release();
      }
    };
    await Promise.all([0, 1, 2, 3, 4, 5].map(caller));
    await until(() => stats().arenaLeasedBlocks === leased);
  });
});

test('createServer refuses other values of requestMemory', () => {
  expect(() => createServer({ requestMemory: 'forever' as 'call' })).toThrow(/requestMemory.*lease.*call/);
});
