/**
 * Tests the memory of large messages after each way to release it. Every view of the memory is empty, and
 * using a view fails with an error. No view ever shows the memory's next content.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { MessageChannel } from 'node:worker_threads';
import {
  allocBuffer,
  type Channel,
  createClient,
  keep,
  leaseOf,
  RpcError,
  type ServerOptions,
  Status,
  stats,
} from 'rdma-rpc';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { runs } from '../extent.ts';
import { turn, until } from '../outcomes.ts';
import { EchoDefinition, type EchoMessage } from './gen/echo.rdma.ts';
import { openPair, type Pair, type PairWay, pairWays } from './pair.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const bytes = 200_000;
const filled = (value: number): Uint8Array => new Uint8Array(bytes).fill(value);

let pair: Pair | undefined;
afterEach(async () => {
  await pair?.close();
  pair = undefined;
});

type Handler = (request: EchoMessage) => unknown;

async function serving(way: PairWay, handler: Handler, options: ServerOptions = {}) {
  pair = await openPair(way, (server) => server.add(EchoDefinition, { echo: handler as never }), options);
  await pair.channel.ready();
  return { channel: pair.channel, client: createClient(EchoDefinition, pair.channel) };
}

/** A view of memory that was just released, by each way of releasing it. */
const givingBack: Readonly<Record<string, (way: PairWay) => Promise<[Uint8Array, Channel]>>> = {
  'the end of the call': async (way) => {
    let kept: Uint8Array | undefined;
    const { channel, client } = await serving(way, (request) => {
      if (request.number === 7) kept = request.payload;
      return {};
    });
    await client.echo({ payload: filled(7), number: 7 });
    return [kept!, channel];
  },
  'the end of a call that failed': async (way) => {
    let kept: Uint8Array | undefined;
    const { channel, client } = await serving(way, (request) => {
      if (request.number !== 7) return {};
      kept = request.payload.subarray(10);
      throw new RpcError(Status.NOT_FOUND, 'no');
    });
    await expect(client.echo({ payload: filled(7), number: 7 })).rejects.toMatchObject({
      code: Status.NOT_FOUND,
    });
    return [kept!, channel];
  },
  'release() in the handler': async (way) => {
    let kept: Uint8Array | undefined;
    const release: Handler = (request) => {
      kept ??= request.payload;
      leaseOf(request)?.release();
      return {};
    };
    const { channel, client } = await serving(way, release, { requestMemory: 'lease' });
    await client.echo({ payload: filled(7) });
    return [kept!, channel];
  },
  'release() of an answer': async (way) => {
    const { channel, client } = await serving(way, (request) => request);
    const answer = await client.echo({ payload: filled(7) });
    leaseOf(answer)!.release();
    return [answer.payload, channel];
  },
  'release() of allocBuffer': async (way) => {
    const { channel } = await serving(way, (request) => request);
    const lease = allocBuffer(bytes, channel);
    const view = lease.bytes.fill(7);
    lease[Symbol.dispose]();
    return [view, channel];
  },
};

/** All operations that a program can do with a view. */
const using: Readonly<Record<string, (view: Uint8Array) => unknown>> = {
  'its length': (view) => view.length,
  'its bytes': (view) => view[0],
  'its buffer': (view) => view.buffer.byteLength,
  'a copy': (view) => view.slice(),
  'a new view': (view) => new Uint8Array(view.buffer as ArrayBuffer)[0],
  'a part of it': (view) => view.subarray(0, 10).length,
  structuredClone: (view) => structuredClone(view),
  // Node 20 returns true.
  'posting it': ({ buffer }) => void new MessageChannel().port1.postMessage(buffer, [buffer as ArrayBuffer]),
  'writing to it': (view) => view.set([1]),
  'a hex text': (view) => Buffer.from(view.buffer as ArrayBuffer).toString('hex'),
};
const empty = [undefined, 0, ''];

describe.each(pairWays)('over %s', (way) => {
  test.each(Object.keys(givingBack))('a view is empty after %s, however it is used', async (name) => {
    const [view, channel] = await givingBack[name]!(way);
    // Other messages use the memory now.
    const client = createClient(EchoDefinition, channel);
    for (let i = 0; i < 10; i++) leaseOf(await client.echo({ payload: filled(100 + i) }))?.release();
    for (const [what, use] of Object.entries(using)) {
      let result: unknown;
      try {
        result = use(view);
      } catch (error) {
        result = String(error);
      }
      if (typeof result === 'string' && result !== '')
        expect(result, what).toMatch(/detached|DataCloneError|RangeError/i);
      else expect(empty, what).toContain(result);
    }
    await expect(client.echo({ payload: view })).rejects.toThrow(/EchoMessage\.payload: its ArrayBuffer was/);
  });

  test('a handler that continues after its call was cancelled can read its request until it ends', async () => {
    let go: () => void = () => undefined;
    const stalled = new Promise<void>((resolve) => {
      go = resolve;
    });
    let seen: number[] | undefined;
    let view: Uint8Array | undefined;
    const { client } = await serving(way, async (request) => {
      if (request.number !== 7) return {};
      view = request.payload;
      await stalled;
      seen = [view.length, view[0]!, view.at(-1)!];
      return {};
    });
    const given = new AbortController();
    const call = client.echo({ payload: filled(7), number: 7 }, { signal: given.signal });
    await until(() => view !== undefined);
    given.abort();
    await expect(call).rejects.toMatchObject({ code: Status.CANCELLED });
    for (let i = 0; i < 5; i++) await client.echo({ payload: filled(100 + i) });
    go();
    await until(() => seen !== undefined);
    expect(seen).toEqual([bytes, 7, 7]);
    await until(() => view!.length === 0);
  });

  test('a handler whose client has disconnected can read its request until it ends', async () => {
    let go: () => void = () => undefined;
    const stalled = new Promise<void>((resolve) => {
      go = resolve;
    });
    let view: Uint8Array | undefined;
    let seen: number | undefined;
    const { client, channel } = await serving(way, async (request) => {
      view = request.payload;
      await stalled;
      seen = view[0];
      return {};
    });
    const failed = expect(client.echo({ payload: filled(7) })).rejects.toBeInstanceOf(RpcError);
    await until(() => view !== undefined);
    await channel.close();
    await failed;
    go();
    await until(() => seen !== undefined);
    // The memory may be unmapped with its context, but it never belongs to another message.
    expect([7, undefined]).toContain(seen);
    await until(() => view!.length === 0);
  });

  test.each<[string, Handler]>([
    ['all of it', (request) => request],
    ['a part of it', (request) => ({ payload: request.payload.subarray(100) })],
    [
      'a part of it, later',
      async (request) => {
        await turn();
        return { payload: request.payload.subarray(100) };
      },
    ],
    [
      'all of it, and has given it a timer',
      (request) => {
        setTimeout(() => request.payload[0], 1);
        return request;
      },
    ],
    ['a clone', (request) => structuredClone(request)],
  ])('a handler that returns its request needs no copy: %s', async (_, handler) => {
    const { client } = await serving(way, handler);
    for (let i = 0; i < 20; i++) {
      const { payload } = await client.echo({ payload: filled(i) });
      expect([payload[0], payload.at(-1), new Set(payload).size]).toEqual([i, i, 1]);
    }
  });

  test('memory that a handler has transferred to another thread stays valid', async () => {
    const moved: [number, ArrayBuffer][] = [];
    const { client } = await serving(way, (request) => {
      try {
        const buffer = request.payload.buffer as ArrayBuffer;
        moved.push([request.number, structuredClone(buffer, { transfer: [buffer] })]);
      } catch {
        // Node refuses to transfer buffers that native code has created.
      }
      return {};
    });
    for (let i = 0; i < 5; i++) await client.echo({ payload: filled(i), number: i });
    for (const [i, buffer] of moved) expect(new Uint8Array(buffer)[buffer.byteLength >> 1]).toBe(i);
  });

  describe('keep()', () => {
    test.each<[string, (request: EchoMessage) => Uint8Array]>([
      ['the request', (request) => keep(request).payload],
      ['a value of it', (request) => keep(request.payload)],
      ['a part of a value', (request) => keep(request.payload.subarray(5))],
      ['a copy of the request, as interceptors make', (request) => keep({ ...request }).payload],
    ])('keeps %s after the call, until it is unreachable', async (_, keeping) => {
      const kept: Uint8Array[] = [];
      const { client } = await serving(way, (request) => {
        if (request.number < 100) kept.push(keeping(request));
        return {};
      });
      for (let i = 0; i < 5; i++) await client.echo({ payload: filled(i), number: i });
      for (let i = 0; i < 5; i++) await client.echo({ payload: filled(200), number: 200 });
      for (const [i, view] of kept.entries()) expect([view[0], view.at(-1)]).toEqual([i, i]);
      const held = stats(way).arenaLeasedBlocks;
      kept.length = 0;
      await until(() => {
        collect();
        return stats(way).arenaLeasedBlocks <= held - 4;
      });
    });

    test('a kept request is released by its lease', async () => {
      let kept: EchoMessage | undefined;
      const { client } = await serving(way, (request) => {
        kept = keep(request);
        return {};
      });
      await client.echo({ payload: filled(3) });
      expect(kept!.payload[0]).toBe(3);
      leaseOf(kept!)!.release();
      expect(kept!.payload.length).toBe(0);
    });

    test('fails after the call has ended, and says so', async () => {
      let kept: EchoMessage | undefined;
      const { client } = await serving(way, (request) => {
        kept = request;
        return {};
      });
      await client.echo({ payload: filled(3) });
      expect(() => keep(kept!)).toThrow(/keep: the memory of this request has been released already/);
    });
  });

  test('garbage collection frees thousands of requests and responses that are never released', {
    timeout: 120_000,
  }, async () => {
    const { client } = await serving(way, (request) => request);
    const payload = new Uint8Array(40_000).fill(9);
    const most = stats(way).arenaBytes + (64 << 20);
    for (let i = 0; i < runs(10_000); i += 20) {
      const answers = await Promise.all(Array.from({ length: 20 }, () => client.echo({ payload })));
      for (const answer of answers) if (answer.payload[39_999] !== 9) throw new Error('wrong');
    }
    expect(stats(way).arenaBytes).toBeLessThan(most);
  });
});

test('keep() returns messages without a lease unchanged', () => {
  const small = { payload: new Uint8Array(10), nested: { list: [new Uint8Array(3)] } };
  expect(keep(small)).toBe(small);
});

test('a request that is read after its call causes one warning per method, which names the field', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  const kept: EchoMessage[] = [];
  const { client } = await serving('shm', (request) => {
    kept.push(request);
    return {};
  });
  for (let i = 0; i < 3; i++) await client.echo({ payload: filled(i), parts: [filled(i)] });
  await until(() => kept.length === 3);
  for (const request of kept) expect([request.payload.length, request.parts[0]!.length]).toEqual([0, 0]);
  const texts = warned.mock.calls
    .map(([text]) => String(text))
    .filter((text) => text.includes('keep(request)'));
  warned.mockRestore();
  expect(texts).toHaveLength(1);
  expect(texts[0]).toMatch(
    /^test\.echo\.Echo\/Echo: `payload` of a request was read after the call had ended/,
  );
});

test('the encoder refuses a request that was stored without keep(), and names its method', async () => {
  const stored: Uint8Array[] = [];
  const errors: unknown[] = [];
  pair = await openPair(
    'shm',
    (server) =>
      server.add(EchoDefinition, {
        echo: (request) => {
          stored.push(request.payload);
          return {};
        },
        fetch: () => ({ payload: stored[0]! }),
      }),
    { onHandlerError: (error) => errors.push(error) },
  );
  const client = createClient(EchoDefinition, pair.channel);
  await client.echo({ payload: filled(1) });
  await expect(client.fetch({})).rejects.toMatchObject({ code: Status.INTERNAL });
  expect(String(errors[0])).toMatch(
    /payload: its ArrayBuffer was detached: it came with a request of test\.echo\.Echo\/Echo,.*keep\(request\)/,
  );
});
