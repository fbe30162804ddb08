/**
 * Tests `option (rdma_rpc.preferred_codec) = MSGPACK`, through generated code: every kind of call, large
 * values, errors, and pairs of peers of which one was generated before the option was added.
 */
import {
  type Channel,
  createChannel,
  createClient,
  createInProcessChannel,
  createServer,
  type Handlers,
  leaseOf,
  type ServiceDefinition,
  Status,
} from 'rdma-rpc';
import { Method } from 'rdma-rpc/generated/v1';
import { defineService, method } from 'rdma-rpc/msgpack';
import { peersOf, serveReverse } from 'rdma-rpc/reverse';
import { describe, expect, onTestFinished, test } from 'vitest';
import { methodId } from '../../runtime/codec/service/method-id.ts';
import { BookDefinition, Entry, type EntryInit, LedgerDefinition } from './gen/ledger.rdma.ts';

const entry: EntryInit = {
  id: 'e-1',
  cents: -(2n ** 40n),
  tags: ['a', 'ü'],
  parts: { 7: { id: 'part' } },
  proof: { case: 'url', value: 'https://example.org' },
  at: { seconds: 5n },
  paid: false,
};

let forgotten: (id: string) => void = () => undefined;
const handlers: Handlers<typeof LedgerDefinition> = {
  echo: (request) => request,
  plain: (request) => request,
  *list({ entries, bytes }) {
    for (let i = 0; i < entries; ++i)
      yield { id: String(i), proof: { case: 'scan', value: new Uint8Array(Number(bytes)).fill(i) } };
  },
  async import(requests) {
    let entries = 0;
    for await (const request of requests) {
      entries++;
      leaseOf(request)?.release();
    }
    return { entries };
  },
  async *chat(requests) {
    for await (const { id } of requests) yield { id: id.toUpperCase() };
  },
  forget: ({ id }) => forgotten(id),
};

/** Returns the definition as generated before its methods had the option. */
function older<D extends ServiceDefinition>(definition: D): D {
  const methods = Object.entries(definition.methods).map(([key, { preferred, ...rest }]) => [
    key,
    new Method({ ...rest, options: {} } as never),
  ]);
  return { ...definition, methods: Object.fromEntries(methods) };
}

async function open(way: string, served: typeof LedgerDefinition): Promise<Channel> {
  if (way === 'in process') {
    const channel = createInProcessChannel((server) => server.add(served, handlers));
    onTestFinished(() => channel.close());
    return channel;
  }
  const server = createServer().add(served, handlers);
  const channel = createChannel(await server.listen('127.0.0.1:0'));
  onTestFinished(async () => {
    await channel.close();
    await server.shutdown({ graceMs: 0 });
  });
  return channel;
}

describe.each(['in process', 'shm'])('%s', (way) => {
  test.each(['echo', 'plain'] as const)('%s: complete messages are decoded', async (name) => {
    const client = createClient(LedgerDefinition, await open(way, LedgerDefinition));
    expect(await client[name](entry)).toEqual(Entry.create(entry));
    expect(await client[name]({})).toEqual(Entry.create());
  });

  test.each([10, 9000, 1_000_000])('a message with %d bytes arrives', async (bytes) => {
    const client = createClient(LedgerDefinition, await open(way, LedgerDefinition));
    const scan = new Uint8Array(bytes).fill(7);
    const { proof } = await client.echo({ proof: { case: 'scan', value: scan } });
    expect(Buffer.compare(proof.value as Uint8Array, scan)).toBe(0);
  });

  test('streams of all kinds work', async () => {
    const client = createClient(LedgerDefinition, await open(way, LedgerDefinition));
    const sizes: number[] = [];
    for await (const { proof } of client.list({ entries: 3, bytes: 50_000n }))
      sizes.push((proof.value as Uint8Array).length);
    expect(sizes).toEqual([50_000, 50_000, 50_000]);
    expect(await client.import([{ id: 'a' }, entry])).toEqual({ entries: 2, bytes: 0n });
    const ids: string[] = [];
    for await (const { id } of client.chat([{ id: 'a' }, { id: 'b' }])) ids.push(id);
    expect(ids).toEqual(['A', 'B']);
  });

  test('one-way calls work', async () => {
    const client = createClient(LedgerDefinition, await open(way, LedgerDefinition));
    const heard = new Promise<string>((resolve) => {
      forgotten = resolve;
    });
    await client.forget({ id: 'x' });
    expect(await heard).toBe('x');
  });

  test('a client from before the option is served in protobuf', async () => {
    const client = createClient(older(LedgerDefinition), await open(way, LedgerDefinition));
    expect(await client.echo(entry)).toEqual(Entry.create(entry));
    expect(await client.import([{ id: 'a' }])).toEqual({ entries: 1, bytes: 0n });
  });

  test('a server from before the option causes an error with that reason, and nothing has run', async () => {
    const client = createClient(LedgerDefinition, await open(way, older(LedgerDefinition)));
    const refused = {
      code: Status.UNIMPLEMENTED,
      processed: 'no',
      message: expect.stringMatching(
        /test\.ledger\.Ledger\/\w+ was called with MessagePack messages.*preferred_codec/,
      ),
    };
    await expect(client.echo(entry)).rejects.toMatchObject(refused);
    await expect(client.import([entry])).rejects.toMatchObject(refused);
    expect(await client.plain(entry)).toEqual(Entry.create(entry));
  });
});

test('calls from a server to its client work', async () => {
  let call: Promise<Entry> | undefined;
  const channel = createInProcessChannel((server) => {
    const peers = peersOf(server);
    server.add(BookDefinition, {
      usual: async (request) => {
        call = peers.client(LedgerDefinition, peers.all[0]!).echo(request);
        return await call;
      },
    });
  });
  const reverse = serveReverse(channel).add(LedgerDefinition, handlers);
  onTestFinished(async () => {
    await reverse.close();
    await channel.close();
  });
  await reverse.ready;
  expect(await createClient(BookDefinition, channel).usual(entry)).toEqual(Entry.create(entry));
});

test('a service without a schema is called with the same bytes', async () => {
  const Schemaless = defineService({
    name: 'test.ledger.Ledger',
    methods: { Echo: method<EntryInit, EntryInit>() },
  });
  const channel = createInProcessChannel((server) =>
    server.add(Schemaless, { Echo: ({ id }) => ({ id: `${id}!` }) }),
  );
  onTestFinished(() => channel.close());
  expect(await createClient(LedgerDefinition, channel).echo({ id: 'a' })).toEqual(Entry.create({ id: 'a!' }));
  await expect(createClient(older(LedgerDefinition), channel).echo({ id: 'a' })).rejects.toMatchObject({
    code: Status.UNIMPLEMENTED,
    message: expect.stringMatching(
      /was called with protobuf messages, but its definition on this server has another preferred_codec/,
    ),
  });
});

test('the methods with MessagePack have it, under their documented ids', () => {
  const forms = [LedgerDefinition, BookDefinition].flatMap(({ methods }) =>
    Object.values(methods).map(({ name, id, preferred, options }) => [
      name,
      id,
      preferred?.id,
      options.preferredCodec,
    ]),
  );
  const path = (service: string, name: string) => `test.ledger.${service}/${name}`;
  const packed = (service: string, name: string) => [
    name,
    methodId(path(service, name)),
    methodId(`${path(service, name)}+msgpack`),
    'MSGPACK',
  ];
  const usual = (service: string, name: string) => [
    name,
    methodId(path(service, name)),
    undefined,
    undefined,
  ];
  expect(forms).toEqual([
    packed('Ledger', 'Echo'),
    packed('Ledger', 'List'),
    packed('Ledger', 'Import'),
    packed('Ledger', 'Chat'),
    packed('Ledger', 'Forget'),
    usual('Ledger', 'Plain'),
    usual('Book', 'Usual'),
    packed('Book', 'Packed'),
  ]);
});
