/**
 * Tests services without a schema. Such services have the same clients, handlers, streams, large messages and
 * errors, in process and over shared memory.
 */
import { type Client, createClient, createServer, type Handlers, leaseOf, RpcError, Status } from 'rdma-rpc';
import { bidiStream, clientStream, defineService, method, serverStream } from 'rdma-rpc/msgpack';
import { afterEach, beforeEach, describe, expect, expectTypeOf, test } from 'vitest';
import { type Channel, createChannel, createInProcessChannel } from '../../runtime/index.ts';

interface Message {
  from: string;
  at?: Date;
  data?: Uint8Array;
}

const Room = defineService({
  name: 'chat.Room',
  methods: {
    say: method<Message, { id: bigint; echo: Message }>({ idempotencyLevel: 'IDEMPOTENT' }),
    fail: method<unknown, string>(),
    history: serverStream<{ count: number; bytes: number }, Message>(),
    import: clientStream<Message, number>(),
    join: bidiStream<string, { line: string }>(),
  },
});

const handlers: Handlers<typeof Room> = {
  say: (message) => ({ id: 2n ** 40n, echo: message }),
  fail: (reason) => {
    if (reason === 'odd') return (() => 0) as unknown as string;
    throw new RpcError(Status.NOT_FOUND, String(reason));
  },
  *history({ count, bytes }) {
    for (let i = 0; i < count; ++i) yield { from: String(i), data: new Uint8Array(bytes).fill(i) };
  },
  async import(messages) {
    let bytes = 0;
    for await (const message of messages) {
      bytes += message.data?.length ?? 0;
      leaseOf(message)?.release();
    }
    return bytes;
  },
  async *join(lines) {
    for await (const line of lines) yield { line: line.toUpperCase() };
  },
};

describe.each(['in process', 'shm'])('%s', (way) => {
  let channel: Channel;
  let client: Client<typeof Room>;
  let close: () => Promise<void>;
  beforeEach(async () => {
    if (way === 'in process') {
      channel = createInProcessChannel((server) => server.add(Room, handlers));
      close = () => channel.close();
    } else {
      const server = createServer().add(Room, handlers);
      channel = createChannel(await server.listen('127.0.0.1:0'));
      close = async () => {
        await channel.close();
        await server.shutdown({ graceMs: 0 });
      };
    }
    client = createClient(Room, channel);
  });
  afterEach(() => close());

  test.each([0, 10, 8000, 9000, 20_000, 1_000_000])('a message with %d bytes arrives', async (bytes) => {
    const message = { from: 'Ada', at: new Date(5), data: new Uint8Array(bytes).fill(7) };
    const { id, echo } = await client.say(message);
    expect(id).toBe(2n ** 40n);
    expect(echo.at).toEqual(message.at);
    expect(Buffer.compare(echo.data!, message.data)).toBe(0);
  });

  test('streams of all kinds work', async () => {
    const sizes: number[] = [];
    for await (const { data } of client.history({ count: 4, bytes: 50_000 })) sizes.push(data!.length);
    expect(sizes).toEqual([50_000, 50_000, 50_000, 50_000]);
    const messages = [1, 2, 3].map((n) => ({ from: 'a', data: new Uint8Array(n * 20_000) }));
    expect(await client.import(messages)).toBe(120_000);
    const lines: string[] = [];
    for await (const { line } of client.join(['a', 'b'])) lines.push(line);
    expect(lines).toEqual(['A', 'B']);
  });

  test('errors are the same as those of other services', async () => {
    await expect(client.fail('nothing here')).rejects.toMatchObject({
      code: Status.NOT_FOUND,
      processed: 'yes',
    });
    await expect(client.fail('odd')).rejects.toMatchObject({ code: Status.INTERNAL });
    await expect(client.fail(() => 0)).rejects.toMatchObject({
      code: Status.INTERNAL,
      processed: 'no',
      message: expect.stringMatching(/chat\.Room\/fail request: a function cannot be sent/),
    });
  });
});

test('a response may be any value', async () => {
  const Any = defineService({ name: 'Any', methods: { echo: method<unknown, unknown>() } });
  const channel = createInProcessChannel((server) => server.add(Any, { echo: (value) => value }));
  const client = createClient(Any, channel);
  for (const value of [null, undefined, 0, 'a', [], {}, [[{}]], false])
    expect(await client.echo(value)).toEqual(value);
  const large = new Uint8Array(100_000).fill(3);
  expect(Buffer.compare((await client.echo(large)) as Uint8Array, large)).toBe(0);
  await channel.close();
});

test('the types are those of the definition', () => {
  type TestClient = Client<typeof Room>;
  expectTypeOf<TestClient['say']>().parameter(0).toEqualTypeOf<Message>();
  expectTypeOf<TestClient['say']>().returns.resolves.toEqualTypeOf<{ id: bigint; echo: Message }>();
  expectTypeOf<TestClient['history']>().returns.toEqualTypeOf<AsyncIterable<Message>>();
  expectTypeOf<TestClient['import']>().returns.resolves.toEqualTypeOf<number>();
});

test.each([
  ['a service', { name: 'a b', methods: {} }],
  ['a method', { name: 'a', methods: { 'b/c': method() } }],
])('a name that is none, of %s', (_, definition) => {
  expect(() => {
    defineService(definition);
    if (Object.keys(definition.methods).length === 0)
      defineService({ ...definition, methods: { x: method() } });
  }).toThrow(/is no name/);
});

test('a definition is like a generated one', () => {
  expect(Room.name).toBe('Room');
  expect(Room.fullName).toBe('chat.Room');
  expect(Room.methods.say).toMatchObject({
    name: 'say',
    fullName: 'chat.Room/say',
    requestStream: false,
    options: { idempotencyLevel: 'IDEMPOTENT', preferredCodec: 'MSGPACK' },
  });
  expect(Room.methods.say.id).toBeGreaterThan(255);
});
