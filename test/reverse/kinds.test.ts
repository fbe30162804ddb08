/**
 * Tests that calls from a server to its client are like any other calls, of every kind and size, over every
 * fabric.
 */
import { allocBuffer, leaseOf, type Metadata, Status, stats } from 'rdma-rpc';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type PairWay, pairWays } from '../runtime/pair.ts';
import { Authority, pems } from '../security/certificates.ts';
import { caught, collect } from '../stream/stream-world.ts';
import { openReverse, type ReverseBed } from './reverse-bed.ts';

const authority = new Authority();
const serverCert = pems(authority.issue({ names: ['localhost'], addresses: ['127.0.0.1'] }));
const security = { require: 'sealed' } as const;

const MiB = 1024 * 1024;
/** All size classes: in the frame, in segments, in gather entries, and one message of 16 MiB. */
const sizes = [0, 1, 200, 5_000, 9_000, 70_000, 1_000_000, 16 * MiB];

let bed: ReverseBed;
afterEach(() => bed.close());

const worlds: readonly (readonly [string, PairWay, object, object])[] = [
  ...pairWays.map((way) => [way, way, {}, {}] as const),
  ['sim, sealed', 'sim', { security }, {}],
  ['shm-fd, sealed', 'shm-fd', { security }, { security }],
  ['tcp by TLS, sealed', 'tcp', { security, tls: serverCert }, { tls: { ca: authority.ca } }],
  ['shm by TLS, sealed', 'shm', { security, tls: serverCert }, { tls: { ca: authority.ca } }],
  ['tcp, with a context for each session', 'tcp', { isolation: 'session' }, { isolation: 'session' }],
];

describe.each(worlds)('%s', (_, way, serverOptions, channelOptions) => {
  test('messages of every size arrive in both directions', async () => {
    bed = await openReverse(way, serverOptions, channelOptions);
    for (const bytes of sizes) {
      const payload = new Uint8Array(bytes).map((_, i) => i * 7);
      const answer = await bed.echo.echo({ payload, number: bytes });
      expect(answer.number).toBe(bytes);
      expect(Buffer.compare(answer.payload, payload)).toBe(0);
      leaseOf(answer)?.release();
    }
  });

  test('1,000 simultaneous calls each get their own answer, while the client calls, too', async () => {
    bed = await openReverse(way, serverOptions, channelOptions);
    const payload = (number: number): Uint8Array => new Uint8Array((number % 40) * 500).fill(number);
    const calls = Array.from({ length: 1000 }, (_, number) =>
      bed.echo.echo({ number, payload: payload(number) }),
    );
    for (const [index, { number, payload: got }] of (await Promise.all(calls)).entries()) {
      expect(number).toBe(index);
      expect(Buffer.compare(got, payload(index))).toBe(0);
    }
  });

  test('streams of all kinds work', async () => {
    bed = await openReverse(way, serverOptions, channelOptions);
    const { streams } = bed;
    const counted = await collect(streams.count({ count: 300, bytes: 100 }));
    expect(counted.map(({ number }) => number)).toEqual(counted.map((_, i) => i));
    expect(counted).toHaveLength(300);
    const items = Array.from({ length: 2000 }, (_, number) => ({ number }));
    expect(await streams.sum(items)).toMatchObject({ number: 1_999_000, text: '2000' });
    const large = Array.from({ length: 12 }, (_, number) => ({
      number,
      payload: new Uint8Array(number % 3 === 0 ? 2_000_000 : 50).fill(number),
    }));
    let next = 0;
    for await (const item of streams.echo(large)) {
      expect(Buffer.compare(item.payload, large[next]!.payload)).toBe(0);
      expect(item.number).toBe(next++);
      leaseOf(item)?.release();
    }
    expect(next).toBe(large.length);
    expect(await streams.unary({ count: 3, text: 'x' })).toBeDefined();
  });

  test('streams have errors, headers and trailers, and can be left, cancelled or time out', async () => {
    bed = await openReverse(way, serverOptions, channelOptions);
    const { streams, streamLog } = bed;
    let trailer: Metadata | undefined;
    const failing = collect(streams.behave({ text: 'not found' }, { onTrailer: (got) => (trailer = got) }));
    expect(await caught(() => failing)).toMatchObject({
      code: Status.NOT_FOUND,
      rawMessage: 'no such thing',
    });
    expect(trailer?.get('x-why')).toBe('gone');
    let header: Metadata | undefined;
    const options = { metadata: { 'x-header': 'yes' }, onHeader: (got: Metadata) => (header = got) };
    expect(await collect(streams.count({ count: 2 }, options))).toHaveLength(2);
    expect(header?.get('x-header')).toBe('given');
    for await (const _ of streams.behave({ count: 1_000_000, text: 'left' })) break;
    await vi.waitFor(() => expect(streamLog.finished).toContain('left'));
    const controller = new AbortController();
    const cancelled = collect(streams.behave({ text: 'hang' }, { signal: controller.signal }));
    setTimeout(() => controller.abort(), 20);
    expect(await caught(() => cancelled)).toMatchObject({ code: Status.CANCELLED });
    const late = collect(streams.behave({ text: 'hang' }, { timeoutMs: 50 }));
    expect(await caught(() => late)).toMatchObject({ code: Status.DEADLINE_EXCEEDED });
    await vi.waitFor(() =>
      expect(streamLog.aborted).toEqual(expect.arrayContaining([Status.CANCELLED, Status.DEADLINE_EXCEEDED])),
    );
  });
});

test('large messages are not copied, and their memory is freed', async () => {
  bed = await openReverse('shm');
  const before = stats('shm');
  const answer = await bed.echo.fetch({ number: 3 * MiB });
  expect(answer.payload.length).toBe(3 * MiB);
  // The response is received in place, in memory that the server has granted for it.
  expect(leaseOf(answer)).toBeDefined();
  expect(stats('shm').bulkResponses).toBe(before.bulkResponses + 1);
  await bed.echo.behave({ text: 'release', payload: new Uint8Array(3 * MiB) });
  expect(stats('shm').bulkRequests).toBe(before.bulkRequests + 1);
  leaseOf(answer)?.release();
  await vi.waitFor(() => expect(stats('shm').arenaLeasedBlocks).toBe(0));
});

test('an answer is written into memory that the caller gives', async () => {
  bed = await openReverse('shm');
  const into = allocBuffer(MiB);
  const answer = await bed.echo.fetch({ number: 500_000 }, { into });
  expect(answer.payload.byteLength).toBe(500_000);
  expect(answer.payload.buffer).toBe(into.bytes.buffer);
  into.release();
});
