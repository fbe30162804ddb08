/** Tests calls as users make them, through the addon, over each fabric that works within one process. */

import {
  allocBuffer,
  type ChannelOptions,
  type Client,
  createClient,
  leaseOf,
  Metadata,
  registerBuffer,
  type ServerOptions,
  Status,
  stats,
} from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { caught } from '../outcomes.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';
import { fabricOf, inProcessWays, isInProcess, openWorld, type World, ways } from './world.ts';

const pattern = (bytes: number, seed = 1): Uint8Array => {
  const memory = new Uint8Array(bytes);
  for (let i = 0; i < bytes; ++i) memory[i] = (i * 31 + seed) & 0xff;
  return memory;
};
const same = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

describe.each(ways)('%s', (way) => {
  let world: World | undefined;
  afterEach(async () => {
    await world?.close();
    world = undefined;
  });
  async function open(
    server: ServerOptions = {},
    channel: ChannelOptions = {},
  ): Promise<Client<typeof EchoDefinition>> {
    world = await openWorld(way, server, channel);
    return createClient(EchoDefinition, world.channel);
  }

  test('a call connects the channel and is answered', async () => {
    const client = await open();
    expect(world!.channel.state).toBe('idle');
    expect(await client.echo({ text: 'hällo', number: 7 })).toEqual({
      text: 'hällo',
      number: 7,
      payload: new Uint8Array(0),
      parts: [],
    });
    expect(world!.channel.state).toBe('ready');
    expect(world!.channel.fabric).toBe(isInProcess(way) ? inProcessWays[way] : fabricOf(way).fabric);
  });

  test.each([0, 1, 200, 4000, 8100, 8192, 8193, 20_000, 65_536, 1 << 20, 9_000_001])(
    'a payload of %d bytes arrives and comes back',
    async (bytes) => {
      const client = await open();
      const payload = pattern(bytes);
      const response = await client.echo({ payload, number: bytes });
      expect(response.number).toBe(bytes);
      expect(same(response.payload, payload)).toBe(true);
      leaseOf(response)?.release();
    },
  );

  test('a thousand simultaneous calls, more than the in-flight limit, each get their own answer', async () => {
    const client = await open({}, { inflightMax: 16 });
    const answers = await Promise.all(
      Array.from({ length: 1000 }, (_, i) => client.echo({ number: i, text: `${i}` })),
    );
    expect(answers.map((answer) => answer.number)).toEqual(Array.from({ length: 1000 }, (_, i) => i));
    expect(world!.log.started).toBe(1000);
  });

  test('large and small calls mixed do not disturb each other', async () => {
    const client = await open();
    const sizes = [10, 70_000, 8000, 300_000, 0, 20_000];
    await Promise.all(
      Array.from({ length: 60 }, async (_, i) => {
        const payload = pattern(sizes[i % sizes.length]!, i);
        const answer = await client.echo({ payload, number: i });
        expect(answer.number).toBe(i);
        expect(same(answer.payload, payload)).toBe(true);
        leaseOf(answer)?.release();
      }),
    );
  });

  test('a message with several large values arrives', async () => {
    const client = await open();
    const parts = [pattern(50_000, 1), pattern(10, 2), pattern(100_000, 3)];
    const answer = await client.echo({ text: 'key', parts });
    expect(answer.parts.map((part, i) => same(part, parts[i]!))).toEqual([true, true, true]);
  });

  test.each([
    ['an RpcError', 'not found', Status.NOT_FOUND, 'no such thing', 'yes'],
    ['another error', 'throw', Status.INTERNAL, 'test.echo.Echo/Behave: the handler failed', 'yes'],
    ['a rejection', 'reject', Status.INTERNAL, 'test.echo.Echo/Behave: the handler failed', 'yes'],
    [
      'no response',
      'nothing',
      Status.INTERNAL,
      "test.echo.Echo/Behave: the response cannot be encoded; the server's log may say why",
      'yes',
    ],
  ] as const)(
    '%s of the handler reaches the caller as its code',
    async (_, text, code, rawMessage, processed) => {
      const client = await open();
      expect(await caught(client.behave({ text }))).toMatchObject({ code, rawMessage, processed });
    },
  );

  test('the error hook gets errors that callers do not see', async () => {
    const errors: string[] = [];
    const client = await open({
      onHandlerError: (error, method) => errors.push(`${method}: ${String(error)}`),
    });
    await caught(client.behave({ text: 'throw' }));
    expect(errors).toEqual(['test.echo.Echo/Behave: Error: a secret']);
  });

  test('a method without a handler is UNIMPLEMENTED, processed: no', async () => {
    const client = await open();
    expect(await caught(client.missing({}))).toMatchObject({ code: Status.UNIMPLEMENTED, processed: 'no' });
  });

  test('metadata travels both ways', async () => {
    const client = await open();
    const trailers: Metadata[] = [];
    const metadata = { 'x-trace': ['a', 'b'], 'key-bin': Uint8Array.of(0, 255) };
    const answer = await client.behave(
      { text: 'metadata' },
      { metadata, onTrailer: (trailer) => trailers.push(trailer) },
    );
    expect(answer.number).toBe(3);
    expect([...trailers[0]!]).toEqual([...new Metadata(metadata)]);
  });

  test('metadata travels with large messages', async () => {
    const client = await open();
    const trailers: Metadata[] = [];
    const answer = await client.behave(
      { text: 'metadata', payload: pattern(50_000) },
      { metadata: { k: 'v' }, onTrailer: (trailer) => trailers.push(trailer) },
    );
    expect(answer.number).toBe(1);
    expect(trailers[0]!.get('k')).toBe('v');
  });

  test.each([0, 1, 10, 14, 20])(
    'the maximum amount of metadata arrives beside %d large values',
    async (count) => {
      const client = await open();
      const trailers: Metadata[] = [];
      const parts = Array.from({ length: count }, (_, i) => pattern(20_000, i));
      const metadata = { k: 'v'.repeat(8188) };
      const answer = await client.behave(
        { text: 'metadata', parts },
        { metadata, onTrailer: (trailer) => trailers.push(trailer) },
      );
      expect(answer.number).toBe(1);
      expect(trailers[0]!.get('k')).toBe(metadata.k);
      await expect(client.echo({}, { metadata: { k: 'v'.repeat(8189) } })).rejects.toThrow(
        /larger than 8192 bytes/,
      );
    },
  );

  test('the handler gets the remaining time', async () => {
    const client = await open();
    const { number } = await client.behave({ text: 'time left' }, { timeoutMs: 10_000 });
    expect(number).toBeGreaterThan(5000);
    expect(number).toBeLessThanOrEqual(10_000);
    expect((await client.behave({ text: 'time left' })).number).toBe(0);
  });

  test('the handler gets the address and the name of its peer', async () => {
    const client = await open({}, { identity: 'test client' });
    expect((await client.behave({ text: 'peer' })).text).toMatch(/\(test client\)$/);
  });

  test("a deadline ends a call whose handler hangs, and aborts the handler's signal", async () => {
    const client = await open();
    await client.echo({});
    expect(await caught(client.behave({ text: 'hang' }, { timeoutMs: 500 }))).toMatchObject({
      code: Status.DEADLINE_EXCEEDED,
      processed: 'maybe',
    });
    // Makes one more round trip, so that the cancel has arrived.
    await client.echo({});
    expect(world!.log.aborted).toEqual([Status.DEADLINE_EXCEEDED]);
  });

  test("a signal ends a call, and aborts the handler's signal", async () => {
    const client = await open();
    await client.echo({});
    const controller = new AbortController();
    const call = caught(client.behave({ text: 'hang' }, { signal: controller.signal }));
    await client.echo({});
    controller.abort(new Error('enough'));
    expect(await call).toMatchObject({
      code: Status.CANCELLED,
      processed: 'maybe',
      cause: { message: 'enough' },
    });
    await client.echo({});
    expect(world!.log.aborted).toEqual([Status.CANCELLED]);
  });

  test('a cancelled large call settles, and later calls work', async () => {
    const client = await open();
    const payload = pattern(1 << 20);
    for (let i = 0; i < 20; ++i) {
      const controller = new AbortController();
      const call = caught(client.behave({ text: 'hang', payload }, { signal: controller.signal }));
      if (i % 2 === 0) await client.echo({});
      controller.abort();
      expect(await call).toMatchObject({ code: Status.CANCELLED });
    }
    const answer = await client.echo({ payload });
    expect(same(answer.payload, payload)).toBe(true);
  });

  test.each([
    ['an aborted signal', { signal: AbortSignal.abort() }, Status.CANCELLED],
    ['no time left', { timeoutMs: 0 }, Status.DEADLINE_EXCEEDED],
  ])('%s: the call is never sent', async (_, options, code) => {
    const client = await open();
    expect(await caught(client.echo({}, options))).toMatchObject({ code, processed: 'no' });
    expect(world!.log.started).toBe(0);
  });

  test.each([
    ['a negative time', { timeoutMs: -1 }, /timeoutMs: -1 is not a time in ms/],
    ['a time that is not a number', { timeoutMs: Number.NaN }, /timeoutMs: NaN/],
    ['a bad key', { metadata: { 'a b': 'c' } }, /metadata key "a b"/],
    ['too much metadata', { metadata: { k: 'v'.repeat(9000) } }, /larger than 8192/],
    ['memory that is not a lease', { into: { bytes: new Uint8Array(1) } as never }, /into: give a lease/],
  ])('%s rejects the call with an error that names it', async (_, options, message) => {
    const client = await open();
    await expect(client.echo({}, options)).rejects.toThrow(message);
    expect(world!.log.started).toBe(0);
  });

  test('a time limit above 2^31 ms is no limit in practice', async () => {
    const client = await open();
    expect((await client.echo({ number: 1 }, { timeoutMs: 2 ** 40 })).number).toBe(1);
  });

  test("a request that is too large for the server names the server's option", async () => {
    const client = await open(
      { messageMaxBytes: 100_000 },
      isInProcess(way) ? { messageMaxBytes: 100_000 } : {},
    );
    expect(await caught(client.echo({ payload: pattern(200_000) }))).toMatchObject({
      code: Status.RESOURCE_EXHAUSTED,
      processed: 'no',
      rawMessage: expect.stringMatching(/the server accepts 100000; raise messageMaxBytes/),
    });
    expect((await client.echo({ number: 1 })).number).toBe(1);
  });

  test("a response that is too large for the client names the client's option", async () => {
    const client = await open(isInProcess(way) ? { messageMaxBytes: 100_000 } : {}, {
      messageMaxBytes: 100_000,
    });
    expect(await caught(client.fetch({ number: 200_000 }))).toMatchObject({
      code: Status.RESOURCE_EXHAUSTED,
      rawMessage: expect.stringMatching(/the client accepts 100000; raise messageMaxBytes/),
    });
    expect((await client.fetch({ number: 1000 })).payload).toHaveLength(1000);
  });

  test('a full queue refuses the next call, and the error names the option', async () => {
    const client = await open({}, { inflightMax: 1, queueMax: 2 });
    await client.echo({});
    const controller = new AbortController();
    const waiting = [0, 1, 2].map(() =>
      caught(client.behave({ text: 'hang' }, { signal: controller.signal })),
    );
    expect(await caught(client.echo({}))).toMatchObject({
      code: Status.RESOURCE_EXHAUSTED,
      processed: 'no',
      rawMessage: expect.stringMatching(/queueMax/),
    });
    controller.abort();
    expect((await Promise.all(waiting)).map((error) => error.processed)).toEqual(['maybe', 'no', 'no']);
  });

  test('a waiting call ends at its deadline', async () => {
    const client = await open({}, { inflightMax: 1 });
    await client.echo({});
    const controller = new AbortController();
    const first = caught(client.behave({ text: 'hang' }, { signal: controller.signal }));
    expect(await caught(client.echo({}, { timeoutMs: 20 }))).toMatchObject({
      code: Status.DEADLINE_EXCEEDED,
      processed: 'no',
    });
    controller.abort();
    await first;
    expect((await client.echo({ number: 5 })).number).toBe(5);
    expect(world!.log.started).toBe(3);
  });

  test("a response is written into the caller's lease", async () => {
    const client = await open();
    await client.echo({});
    const lease = allocBuffer(300_000, world!.channel);
    for (let i = 0; i < 3; ++i) {
      const answer = await client.fetch({ number: 200_000 + i }, { into: lease });
      expect(answer.payload).toHaveLength(200_000 + i);
      expect(answer.payload.buffer).toBe(lease.bytes.buffer);
      expect(leaseOf(answer)).toBe(lease);
      expect(answer.payload.every((byte) => byte === ((200_000 + i) & 0xff))).toBe(true);
    }
    expect((await client.fetch({ number: 10 }, { into: lease })).payload).toEqual(
      new Uint8Array(10).fill(10),
    );
    lease.release();
  });

  test('a lease takes the response of one call at a time', async () => {
    const client = await open();
    await client.echo({});
    const lease = allocBuffer(300_000, world!.channel);
    const first = client.fetch({ number: 200_000 }, { into: lease });
    await expect(client.fetch({ number: 200_001 }, { into: lease })).rejects.toThrow(
      /into: another call already uses this lease for its response; pass a different lease to each call/,
    );
    expect((await first).payload.every((byte) => byte === (200_000 & 0xff))).toBe(true);
    expect((await client.fetch({ number: 200_001 }, { into: lease })).payload).toHaveLength(200_001);
    // A failed call also returns the lease.
    await expect(client.fetch({ number: 1 }, { into: lease, signal: AbortSignal.abort() })).rejects.toThrow();
    await expect(client.missing({}, { into: lease })).rejects.toThrow(/not implemented/);
    expect((await client.fetch({ number: 200_002 }, { into: lease })).payload).toHaveLength(200_002);
    lease.release();
  });

  test('a request is sent from a lease or a registered buffer', async () => {
    const client = await open();
    await client.echo({});
    const lease = allocBuffer(100_000, world!.channel);
    lease.bytes.set(pattern(100_000));
    const sum = pattern(100_000).reduce((total, byte) => (total + byte) % 65_536, 0);
    expect(await client.behave({ text: 'release', payload: lease.bytes })).toMatchObject({
      number: sum,
      text: 'leased',
    });
    lease.release();
    const own = pattern(100_000);
    registerBuffer(own, world!.channel);
    expect((await client.behave({ text: 'release', payload: own })).number).toBe(sum);
  });

  test('the memory of released messages is reused', async () => {
    const client = await open();
    await client.echo({});
    let reserved = 0;
    for (let i = 0; i < 200; ++i) {
      const answer = await client.behave({ text: 'release', payload: pattern(500_000) });
      expect(answer.text).toBe('leased');
      const fetched = await client.fetch({ number: 500_000 });
      leaseOf(fetched)?.release();
      if (i === 20) reserved = stats().arenaBytes;
    }
    // The count falls when the context of an earlier session closes, because each session may have its own
    // context.
    expect(stats().arenaBytes).toBeLessThanOrEqual(reserved);
  });

  test('a closed channel refuses calls with an error that names it', async () => {
    const client = await open();
    await client.echo({});
    const call = caught(client.behave({ text: 'hang' }));
    await world!.channel.close();
    expect(await call).toMatchObject({ code: Status.UNAVAILABLE });
    expect(await caught(client.echo({}))).toMatchObject({
      code: Status.UNAVAILABLE,
      processed: 'no',
      rawMessage: expect.stringMatching(/channel is closed/),
    });
    expect(world!.channel.state).toBe('closed');
  });
});
