/**
 * Tests that large `bytes` begin on a multiple of 64 bytes at every receiver, in requests, responses and
 * streams. The test checks the pointers. Either the option `into` takes effect, or the error gives the reason
 * why it did not.
 */
import { leaseOf, Status } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Method } from '../../runtime/codec/service/method.ts';
import { methodId } from '../../runtime/codec/service/method-id.ts';
import { allocBuffer, createClient, type HandlerContext, type Lease, RpcError } from '../../runtime/index.ts';
import { defineService, method } from '../../runtime/msgpack/index.ts';
import { loadNative } from '../../runtime/native/native.ts';
import { Tree, type TreeInit } from '../codec/gen/everything.rdma.ts';
import { openPair, type Pair, pairWays } from './pair.ts';

const { address } = loadNative();
const pointer = (value: Uint8Array) => address(value.buffer as ArrayBuffer) + value.byteOffset;

function treeMethod<const Q extends boolean, const S extends boolean>(
  name: string,
  requestStream: Q,
  responseStream: S,
) {
  const fullName = `test.Aligned/${name}`;
  return new Method({
    fullName,
    id: methodId(fullName),
    input: Tree,
    output: Tree,
    requestStream,
    responseStream,
    options: {},
  });
}
const service = {
  name: 'Aligned',
  fullName: 'test.Aligned',
  methods: { echo: treeMethod('Echo', false, false), stream: treeMethod('Stream', true, true) },
} as const;
const packed = defineService({ name: 'test.Packed', methods: { Echo: method<Blobs, Blobs>() } });
interface Blobs {
  name: string;
  blobs: Uint8Array[];
}

/**
 * Returns the sizes of all `bytes` in a message that are long enough to be aligned, and their addresses
 * modulo 64.
 */
function places(value: unknown, minBytes = 64): [number, number][] {
  if (value instanceof Uint8Array)
    return value.length >= minBytes ? [[value.length, pointer(value) % 64]] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap((each) => places(each, minBytes));
}
const payload = (length: number, salt = 0) => new Uint8Array(length).map((_, i) => i * 31 + salt);
const sizes = [1, 63, 64, 65, 100, 700, 4095, 4096, 5000, 16_383, 16_384, 16_385, 65_537, 1_000_003];
const trees: [string, TreeInit][] = [
  ...sizes.map((size): [string, TreeInit] => [
    `one value of ${size}`,
    { label: 'x', payload: payload(size) },
  ]),
  [
    'all sizes in one message',
    { label: 'all', children: sizes.map((size) => ({ payload: payload(size), label: 'after' })) },
  ],
  [
    'nested and in maps',
    {
      payload: payload(70_001),
      next: {
        payload: payload(5001),
        named: { a: { payload: payload(20_001) }, b: { payload: payload(333) } },
      },
    },
  ],
  [
    'more values than gather entries',
    { children: Array.from({ length: 40 }, (_, i) => ({ payload: payload(17_001 + i, i) })) },
  ],
  [
    'two thousand values',
    { children: Array.from({ length: 2000 }, (_, i) => ({ payload: payload(4096 + (i % 7), i) })) },
  ],
];

// Without native code the address of memory is unknown, because loopback uses memory wherever V8 allocates
// it.
describe.each(pairWays.filter((way) => way !== 'loopback'))('over %s', (way) => {
  let pair: Pair;
  let seen: [number, number][] = [];
  let all: [number, number][] = [];
  let leased: boolean;
  const note = (request: Tree): Tree => {
    seen = places(request);
    all.push(...seen);
    leased = leaseOf(request) !== undefined;
    return request;
  };
  beforeEach(async () => {
    pair = await openPair(way, (server) => {
      server.add(service, {
        echo: (request: Tree, _: HandlerContext) => note(request),
        stream: async function* (requests: AsyncIterable<Tree>) {
          for await (const request of requests) yield note(request);
        },
      });
      server.add(packed, {
        Echo: (request: Blobs) => {
          seen = places(request);
          return request;
        },
      });
    });
    // Over shm-fd there is memory to lease only while the channel is connected.
    await pair.channel.ready();
  });
  afterEach(async () => pair.close());
  const client = () => createClient(service, pair.channel);
  const expectAligned = (all: [number, number][], request: unknown) => {
    expect(all).toEqual(places(request).map(([size]) => [size, 0]));
  };
  const same = (reply: Tree, request: TreeInit) =>
    expect(Buffer.compare(Tree.encode(reply), Tree.encode(request))).toBe(0);

  test.each(trees)('%s: all values are aligned', async (_name, request) => {
    for (let again = 0; again < 3; ++again) {
      const reply = await client().echo(request);
      expectAligned(seen, request);
      expectAligned(places(reply), request);
      same(reply, request);
    }
  });

  test('messages of streams are aligned', async () => {
    const requests = trees.slice(0, 17).map(([, request]) => request);
    let i = 0;
    all = [];
    for await (const reply of client().stream(requests)) {
      const request = requests[i++]!;
      expectAligned(places(reply), request);
      same(reply, request);
    }
    // The handler gets messages before the reader.
    expect(all).toEqual(requests.flatMap((request) => places(request).map(([size]) => [size, 0])));
    expect(i).toBe(requests.length);
  });

  test('MessagePack messages are aligned', async () => {
    const request = { name: 'all', blobs: [20_000, 5000, 4097, 70_001].map((size) => payload(size)) };
    const reply = await createClient(packed, pair.channel).Echo(request);
    expectAligned(seen, request);
    expectAligned(places(reply), request);
    expect(reply).toEqual(request);
  });

  test('the handler has views of the arena, and the answer lies in the memory of its lease, without a copy', async () => {
    const reply = await client().echo({ payload: payload(1_000_000) });
    expect(leased).toBe(true);
    const lease = leaseOf(reply)!;
    expect(reply.payload.buffer).toBe(lease.bytes.buffer);
  });

  describe('into', () => {
    const within = (value: Uint8Array, lease: Lease) =>
      pointer(value) >= pointer(lease.bytes) && value.buffer === lease.bytes.buffer;

    test.each([10, 64, 500, 8000, 8192, 100_000, 1 << 20, (1 << 20) + 1])(
      '%i bytes fit into a buffer of that size',
      async (size) => {
        using lease = allocBuffer(size, pair.channel);
        for (let again = 0; again < 3; ++again) {
          const reply = await client().echo(
            { label: 'x'.repeat(1000), payload: payload(size, again) },
            { into: lease },
          );
          expect([
            within(reply.payload, lease),
            leaseOf(reply) === lease,
            pointer(reply.payload) % 64,
          ]).toEqual([true, true, 0]);
          expect(Buffer.compare(reply.payload, payload(size, again))).toBe(0);
        }
      },
    );

    test('a response that does not fit is an error that names the needed size', async () => {
      using lease = allocBuffer(1000, pair.channel);
      const error: RpcError = await client()
        .echo({ payload: payload(100_000) }, { into: lease })
        .then(
          () => expect.unreachable(),
          (cause) => cause,
        );
      expect(error).toBeInstanceOf(RpcError);
      expect([error.code, error.processed]).toEqual([Status.RESOURCE_EXHAUSTED, 'yes']);
      const needed = Number(/allocBuffer\((\d+)\)/.exec(error.message)?.[1]);
      expect(needed).toBeGreaterThan(100_000);
      using enough = allocBuffer(needed, pair.channel);
      const reply = await client().echo({ payload: payload(100_000) }, { into: enough });
      expect(within(reply.payload, enough)).toBe(true);
    });

    test('a response that does not fit gets a lease of its own when the caller allows it', async () => {
      using lease = allocBuffer(1000, pair.channel);
      const reply = await client().echo(
        { payload: payload(100_000) },
        { into: lease, intoOverflow: 'lease' },
      );
      expect(leaseOf(reply)).not.toBe(lease);
      expect(within(reply.payload, lease)).toBe(false);
      expect(Buffer.compare(reply.payload, payload(100_000))).toBe(0);
    });

    test('other values of the option `into` are refused', async () => {
      using lease = allocBuffer(1000, pair.channel);
      const options = { into: lease, intoOverflow: 'copy' as 'lease' };
      await expect(client().echo({}, options)).rejects.toThrow("intoOverflow must be 'error' or 'lease'");
    });
  });
});
