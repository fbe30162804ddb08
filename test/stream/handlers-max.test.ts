/**
 * Tests that a handler which continues after the end of its stream still counts as running, because it still
 * holds its resources.
 */
import { createClient, createInProcessChannel, Status } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import type { ItemInit } from './gen/stream.rdma.ts';
import { StreamsDefinition } from './gen/stream.rdma.ts';
import { caught, collect } from './stream-world.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const close: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const each of close.splice(0)) await each();
});

/**
 * Starts a server for one handler at a time. The handlers begin with a number, and end when `go` is called,
 * for every way in which their streams may end.
 */
function open() {
  let begun = 0;
  let go = (): void => undefined;
  const gate = new Promise<void>((resolve) => (go = resolve));
  const busy = async (): Promise<ItemInit> => {
    ++begun;
    await gate;
    return {};
  };
  async function* busily(): AsyncGenerator<ItemInit> {
    yield await busy();
  }
  const channel = createInProcessChannel(
    (server) =>
      server.add(StreamsDefinition, {
        unary: () => ({}),
        sum: busy,
        count: busily,
        echo: busily,
      }),
    { handlersMax: 1 },
  );
  close.push(() => channel.close());
  return { client: createClient(StreamsDefinition, channel), go: () => go(), begun: () => begun };
}
type World = ReturnType<typeof open>;
type Options = { signal: AbortSignal };

async function* endless(): AsyncGenerator<ItemInit> {
  await new Promise(() => undefined);
}

const kinds: readonly [string, (world: World, options: Options) => Promise<unknown>][] = [
  ['a stream of requests', ({ client }, options) => client.sum(endless(), options)],
  ['a stream of responses', ({ client }, options) => collect(client.count({}, options))],
  ['both', ({ client }, options) => collect(client.echo(endless(), options))],
];

describe.each(kinds)('%s', (_, call) => {
  test('that was cancelled', async () => {
    const world = open();
    const controller = new AbortController();
    const error = caught(() => call(world, { signal: controller.signal }));
    while (world.begun() === 0) await turn();
    controller.abort();
    expect(await error).toMatchObject({ code: Status.CANCELLED });
    const full = await caught(() => world.client.unary({}));
    expect(full).toMatchObject({ code: Status.RESOURCE_EXHAUSTED, processed: 'no' });
    expect(full.message).toMatch(/1 handlers are running already \(option handlersMax of the server\)/);
    world.go();
    for (let tries = 0; ; ++tries) {
      const answer = await world.client.unary({}).catch(() => undefined);
      if (answer !== undefined) break;
      expect(tries).toBeLessThan(10_000);
    }
  });

  test('that has ended makes room, again and again', async () => {
    const world = open();
    world.go();
    for (let i = 0; i < 5; ++i) await call(world, { signal: new AbortController().signal });
    expect(world.begun()).toBe(5);
  });
});
