/**
 * Tests the table of docs/reference/status-codes.md. This test makes each code that the library makes, and
 * checks the `processed` that the table has for it.
 */
import {
  allocBuffer,
  type Client,
  createClient,
  createInProcessChannel,
  RpcError,
  type ServerOptions,
  Status,
} from 'rdma-rpc';
import { expect, test } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { pageOf, tableOf } from './document.ts';

interface World {
  readonly client: Client<typeof EchoDefinition>;
  /** Closes the connection. */
  close(): Promise<void>;
  /** Resolves when the handler of `behave` has begun. The handler never answers. */
  readonly begun: Promise<void>;
}

type Misfortune = (world: World) => Promise<unknown>;

const limitBytes = 100_000;
const large = { payload: new Uint8Array(2 * limitBytes) };

function after(world: World, then: () => unknown): void {
  void world.begun.then(then);
}

/** Makes a call of a server that admits only other clients. */
function guarded(options: ServerOptions): Misfortune {
  return async () => {
    const channel = createInProcessChannel(
      (server) => server.add(EchoDefinition, { echo: () => ({}) }),
      options,
    );
    await createClient(EchoDefinition, channel)
      .echo({})
      .finally(() => channel.close());
  };
}

/** The cases of the table's column "the library makes it when", in the table's order. */
const misfortunes: readonly [string, Misfortune][] = [
  ['cancelled before it was sent', ({ client }) => client.echo({}, { signal: AbortSignal.abort() })],
  [
    'cancelled after',
    (world) => {
      const controller = new AbortController();
      after(world, () => controller.abort());
      return world.client.behave({}, { signal: controller.signal });
    },
  ],
  ['a number that is no code', ({ client }) => client.echo({ text: 'no code' })],
  ['the deadline passed before it was sent', ({ client }) => client.echo({}, { timeoutMs: 0 })],
  ['the deadline passed after', ({ client }) => client.behave({}, { timeoutMs: 1000 })],
  ['the own limit of the server passed', ({ client }) => client.behave({}, { timeoutMs: 60_000 })],
  ['the server allows others only', guarded({ allow: { identity: 'another' } })],
  ['the server does not let it call this', guarded({ authorize: {} })],
  ['the request is too large', ({ client }) => client.echo(large)],
  ['the response is too large', ({ client }) => client.fetch({})],
  [
    'the lease for `into` was released before the call was sent',
    async () => {
      // The call waits for the connection.
      const channel = createInProcessChannel(() => undefined);
      const lease = allocBuffer(1000, channel);
      const call = createClient(EchoDefinition, channel).echo({}, { into: lease });
      lease.release();
      await call.finally(() => channel.close());
    },
  ],
  ['no handler', ({ client }) => client.missing({})],
  ['the request cannot be encoded', ({ client }) => client.echo({ text: 5 as never })],
  ['the handler failed', ({ client }) => client.echo({ text: 'throw' })],
  [
    'the channel is closed',
    async ({ client, close }) => {
      await close();
      return client.echo({});
    },
  ],
  [
    'the connection was lost',
    (world) => {
      after(world, () => world.close());
      return world.client.behave({});
    },
  ],
  [
    'nobody knows who it is',
    guarded({
      authenticate: () => {
        throw new Error('a secret');
      },
    }),
  ],
];

async function outcome(misfortune: Misfortune): Promise<string> {
  let begin: () => void = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const channel = createInProcessChannel(
    (server) =>
      server.add(EchoDefinition, {
        echo: ({ text }) => {
          if (text === 'throw') throw new Error('a secret');
          if (text === 'no code') throw new RpcError(99 as never, 'what?');
          return {};
        },
        behave: () => {
          begin();
          return new Promise(() => {});
        },
        fetch: () => large,
      }),
    { messageMaxBytes: limitBytes, timeoutMaxMs: 1000 },
  );
  await channel.ready();
  const world = { client: createClient(EchoDefinition, channel), close: () => channel.close(), begun };
  const error = await misfortune(world).then(() => undefined, RpcError.from);
  await channel.close();
  return `${error?.codeName} ${error?.processed}`;
}

const rows: string[] = [];
let code = '';
for (const [, name, , sent] of tableOf(pageOf('reference/status-codes'), 'statuses')) {
  if (name !== '') code = name!;
  if (sent !== '') rows.push(`${code} ${sent}`);
}

test.each(misfortunes.map(([what, misfortune], i) => ({ what, misfortune, row: rows[i] })))(
  '$what: $row',
  async ({ misfortune, row }) => {
    expect(await outcome(misfortune)).toBe(row);
  },
);

test('every row of the table is made', () => {
  expect(misfortunes).toHaveLength(rows.length);
  expect(rows.filter((row) => !(row.split(' ')[0]! in Status))).toEqual([]);
});
