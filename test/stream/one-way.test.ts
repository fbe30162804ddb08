/** Tests one-way methods: the caller learns that the request has arrived, but not the result of the call. */
import { type Client, createClient, Status } from 'rdma-rpc';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { ways } from '../runtime/world.ts';
import { StreamsDefinition } from './gen/stream.rdma.ts';
import { caught, openStreams, type StreamWorld } from './stream-world.ts';

describe.each(ways)('%s', (way) => {
  let world: StreamWorld;
  afterEach(async () => {
    await world.close();
  });
  async function open(...options: [object?, object?]): Promise<Client<typeof StreamsDefinition>> {
    world = await openStreams(way, ...options);
    return createClient(StreamsDefinition, world.channel);
  }

  test('the promise resolves with nothing, before the handler is done', async () => {
    const client = await open();
    expect(await client.note({ text: 'hang' })).toBe(undefined);
    expect(world.log.notes).toEqual(['hang']);
    expect(world.log.finished).toEqual([]);
  });

  test('requests arrive in order, each once, including large ones', async () => {
    const client = await open();
    const texts = Array.from({ length: 500 }, (_, i) => `${i}`);
    await Promise.all(texts.map((text) => client.note({ text })));
    expect(world.log.notes).toEqual(texts);
    await client.note({ text: 'large', payload: new Uint8Array(200_000) });
    expect(world.log.notes.at(-1)).toBe('large');
  });

  test('errors reach only the error hook of the server', async () => {
    const errors: string[] = [];
    const client = await open({
      onHandlerError: (error: unknown, method: string) => errors.push(`${method} ${error}`),
    });
    await client.note({ text: 'not found' });
    await vi.waitFor(() =>
      expect(errors).toEqual(['test.stream.Streams/Note RpcError: NOT_FOUND: no such thing']),
    );
  });

  test('at handlersMax the call is rejected, and its caller gets an error', async () => {
    const client = await open({ handlersMax: 2 });
    await client.note({ text: 'hang' });
    await client.note({ text: 'hang' });
    expect(await caught(() => client.note({ text: 'x' }))).toMatchObject({
      code: Status.RESOURCE_EXHAUSTED,
      processed: 'no',
    });
    expect(world.log.notes).toEqual(['hang', 'hang']);
  });

  test('the handler is notified of the end of the connection', async () => {
    const client = await open();
    await client.note({ text: 'hang' });
    await world.channel.close();
    await vi.waitFor(() => expect(world.log.finished).toEqual(['note']));
  });
});

test('streams are off when one side allows none', async () => {
  const world = await openStreams('shm over unix', { streamsMax: 0 });
  const client = createClient(StreamsDefinition, world.channel);
  expect(await caught(() => client.sum([]))).toMatchObject({ code: Status.UNIMPLEMENTED, processed: 'no' });
  expect(await client.unary({ count: 1 })).toMatchObject({ number: 1 });
  await world.close();
});
