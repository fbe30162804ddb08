/**
 * Tests the options of proto/rdma_rpc/options.proto, in generated code and in sessions. The options decide
 * which values move by READ and WRITE, which methods expect large responses, which calls wait for a response,
 * and which methods may run twice. The counters of the native layer show how a value was transferred.
 */
import {
  type Channel,
  type Client,
  createChannel,
  createClient,
  createInProcessChannel,
  createServer,
  type Handlers,
  leaseOf,
  RpcError,
  type Server,
  Status,
  stats,
} from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AnnotatedDefinition, type BlobsInit, Blobs as BlobsType } from './gen/annotated.rdma.ts';

const filled = (bytes: number): Uint8Array => new Uint8Array(bytes).map((_, i) => i * 7 + bytes);
/** Compares without toEqual, which takes seconds for large values. */
const same = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;
const valueBytes = (blobs: unknown): number => Math.max(...[...valuesIn(blobs)].map((value) => value.length));
/**
 * Returns the number of bytes that are written for a message with one large value: 64 bytes for the table, 64
 * bytes for the other fields, and the value. When the client copies the request, as over shared memory, the
 * server reads this number of bytes. On other fabrics only the value is read, because the frame carries the
 * other bytes.
 */
const alignedBytes = (blobs: unknown): number => 128 + valueBytes(blobs);
function* valuesIn(value: unknown): Generator<Uint8Array> {
  if (value instanceof Uint8Array) yield value;
  else if (typeof value === 'object' && value !== null)
    for (const each of Object.values(value)) yield* valuesIn(each);
}

describe.each(['in process', 'shm'] as const)('%s', (way) => {
  let channel: Channel;
  let server: Server | undefined;
  let client: Client<typeof AnnotatedDefinition>;
  let runs: string[];
  let forgotten: () => void;
  let leased: boolean;
  const requestBytes = way === 'shm' ? alignedBytes : valueBytes;

  beforeEach(async () => {
    runs = [];
    const answer = ({ bytes }: { readonly bytes: number }): BlobsInit => ({ usual: filled(bytes) });
    const failingOnce = (name: string) => (): BlobsInit => {
      runs.push(name);
      if (runs.length === 1) throw new RpcError(Status.UNAVAILABLE, 'as planned');
      return {};
    };
    const handlers: Handlers<typeof AnnotatedDefinition> = {
      echo: (request) => {
        leased = leaseOf(request) !== undefined;
        return request;
      },
      plain: answer,
      expected: answer,
      items: async function* (wish) {
        yield answer(wish);
      },
      forget: () => {
        runs.push('forget');
        return new Promise((resolve) => {
          forgotten = () => resolve();
        });
      },
      flaky: failingOnce('flaky'),
      flakyOnce: failingOnce('flakyOnce'),
    };
    if (way === 'in process') {
      channel = createInProcessChannel((each) => each.add(AnnotatedDefinition, handlers));
    } else {
      server = createServer({ fabric: 'shm' }).add(AnnotatedDefinition, handlers);
      channel = createChannel(await server.listen('127.0.0.1:0'), { fabric: 'shm' });
    }
    await channel.ready();
    client = createClient(AnnotatedDefinition, channel);
  });
  afterEach(async () => {
    await channel.close();
    await server?.shutdown({ graceMs: 0 });
    server = undefined;
  });

  /**
   * Returns the amounts that `run` adds to the counters of the native layer. Both ends are in this thread, so
   * both are counted.
   */
  async function counted<T>(run: () => Promise<T>) {
    const fabric = way === 'in process' ? 'sim' : 'shm';
    const before = stats(fabric as 'shm');
    const result = await run();
    const after = stats(fabric as 'shm');
    const moved = (key: keyof typeof after): number => after[key] - before[key];
    return {
      result,
      reads: moved('bulkReads'),
      readBytes: moved('bulkReadBytes'),
      writeBytes: moved('bulkWriteBytes'),
      asked: moved('replyBuffersAsked'),
      predicted: moved('replyBuffersPredicted'),
      memory: moved('mrMisses') + moved('mrHits'),
    };
  }

  describe('bulk_threshold', () => {
    test.each<[string, BlobsInit, boolean]>([
      ['a value below the slot size without the option', { usual: filled(5000) }, false],
      ['a value of the size of its threshold', { early: filled(1000) }, true],
      ['a value one byte below its threshold', { early: filled(999) }, false],
      ['a single byte with threshold 0', { always: filled(1) }, true],
      ['an empty value with threshold 0', { always: new Uint8Array(0) }, false],
      ['a value in a nested message', { inner: { inner: { early: filled(1500) } } }, true],
      ['one large element of a list', { many: [filled(10), filled(1000)] }, true],
      ['a list of small elements', { many: Array.from({ length: 6 }, () => filled(900)) }, false],
      ['a value below a high threshold', { late: filled(5000) }, false],
    ])('%s', async (_what, blobs, apart) => {
      const { result, reads, readBytes, writeBytes } = await counted(() => client.echo(blobs));
      expect(result).toEqual(BlobsType.decode(BlobsType.encode(blobs)));
      expect(reads > 0).toBe(apart);
      // The answer, which has the same value in the same field, is transferred in the same way.
      expect([readBytes, writeBytes]).toEqual(apart ? [requestBytes(blobs), alignedBytes(blobs)] : [0, 0]);
    });

    test.each([14, 20, 40])(
      '%i values with a threshold beside as much metadata as a slot holds',
      async (count) => {
        const many = Array.from({ length: count }, (_, i) => filled(2000 + i));
        for (const spare of [8, 24, 40, 200, 440]) {
          const metadata = { filler: 'x'.repeat(8192 - 3 - 'filler'.length - spare) };
          const beside = [1, 2, 3].map((i) => client.echo({ usual: filled(i) }));
          const reply = await client.echo({ many }, { metadata });
          expect(reply.many.every((value, i) => same(value, many[i]!))).toBe(true);
          expect((await Promise.all(beside)).map(({ usual }) => usual.length)).toEqual([1, 2, 3]);
        }
      },
    );

    test('a value that was READ and not copied is in registered memory', async () => {
      await client.echo({ early: filled(5000) });
      expect(leased).toBe(true);
      await client.echo({ usual: filled(5000) });
      expect(leased).toBe(false);
    });

    test('a value of 40 KB in a message that fits no slot is a gather entry of its own, unless its threshold is higher', async () => {
      const usual = await counted(() => client.echo({ usual: filled(40_000) }));
      const late = await counted(() => client.echo({ late: filled(40_000) }));
      // Without copies, `usual` READs the application's memory, while `late` READs one gather entry of the
      // arena. The answer uses the application's memory in both cases.
      expect(usual.readBytes).toBe(requestBytes(usual.result));
      if (way !== 'shm') expect(usual.memory).toBeGreaterThan(0);
      expect(late.readBytes).toBe(alignedBytes(late.result));
      expect(late.memory).toBe(0);
      expect([usual.reads, late.reads]).toEqual([1, 1]);
    });
  });

  describe('expected_response_bytes', () => {
    test('the first call announces memory for its answer; without the option the server must ask for it', async () => {
      const plain = await counted(() => client.plain({ bytes: 50_000 }));
      expect(plain).toMatchObject({ asked: 1, predicted: 0 });
      const expected = await counted(() => client.expected({ bytes: 50_000 }));
      expect(expected).toMatchObject({ asked: 0, predicted: 1 });
      expect(same(expected.result.usual, plain.result.usual)).toBe(true);
    });

    test('answers of another size than expected arrive unchanged', async () => {
      expect(same((await client.expected({ bytes: 10 })).usual, filled(10))).toBe(true);
      const larger = await counted(() => client.expected({ bytes: 300_000 }));
      expect(same(larger.result.usual, filled(300_000))).toBe(true);
      expect(larger.asked).toBe(1);
      // From then on, the observed sizes decide.
      expect(await counted(() => client.expected({ bytes: 300_000 }))).toMatchObject({ asked: 0 });
    });

    test('a stream announces memory for its first large message', async () => {
      const { asked, result } = await counted(async () => {
        const lengths: number[] = [];
        for await (const { usual } of client.items({ bytes: 50_000 })) lengths.push(usual.length);
        return lengths;
      });
      expect(result).toEqual([50_000]);
      expect(asked).toBe(0);
    });
  });

  test('one_way: the promise resolves to nothing without waiting for the handler', async () => {
    expect(await client.forget({ bytes: 1 })).toBe(undefined);
    expect(runs).toEqual(['forget']);
    forgotten();
  });

  test('idempotency_level: only methods that may run twice are retried after a handler has run', async () => {
    const retry = { attemptsMax: 2, backoffMs: 0 };
    await client.flaky({}, { retry });
    expect(runs).toEqual(['flaky', 'flaky']);
    runs.length = 0;
    await expect(client.flakyOnce({}, { retry })).rejects.toThrow(/is not declared idempotent/);
    expect(runs).toEqual([]);
  });
});
