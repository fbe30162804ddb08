/**
 * Tests calls that `authorize` does not allow. The callers learn that the handler has not run, whatever the
 * reason, and the connection continues.
 */
import {
  type AuthorizeFunction,
  type Channel,
  createClient,
  createInProcessChannel,
  RpcError,
  type ServerOptions,
  Status,
} from 'rdma-rpc';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { authorizeMs } from '../../runtime/limits.ts';
import { caught, until } from '../outcomes.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';

const channels: Channel[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const channel of channels.splice(0)) await channel.close();
});

interface Bed {
  readonly client: ReturnType<typeof connect>['client'];
  readonly ran: string[];
  /** Number of times that `authorize` has been called. */
  asked: number;
}

function connect(authorize: AuthorizeFunction, options: ServerOptions = {}) {
  const bed = { ran: [] as string[], asked: 0 };
  const channel = createInProcessChannel(
    (server) =>
      server.add(StreamsDefinition, {
        async *count() {
          bed.ran.push('count');
          yield { number: 1 };
        },
        async sum() {
          bed.ran.push('sum');
          return {};
        },
        async *echo() {
          bed.ran.push('echo');
          yield { number: 1 };
        },
        async unary() {
          bed.ran.push('unary');
          return {};
        },
      }),
    {
      ...options,
      log: () => undefined,
      authorize: (peer, method) => {
        ++bed.asked;
        return authorize(peer, method);
      },
    },
  );
  channels.push(channel);
  return Object.assign(bed, { client: createClient(StreamsDefinition, channel), channel });
}

async function drained(responses: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of responses);
}

const kinds: Readonly<Record<string, (client: Bed['client']) => Promise<unknown>>> = {
  unary: (client) => client.unary({}),
  'server stream': (client) => drained(client.count({ count: 1 })),
  'client stream': (client) => client.sum([{ number: 1 }, { number: 2 }]),
  'stream in both directions': (client) => drained(client.echo([{ number: 1 }])),
};

const never = () => new Promise<boolean>(() => undefined);
const fail = (error: unknown) => () => {
  throw error;
};
const later = (authorize: () => unknown) => async () => authorize() as boolean;
const unavailable = () =>
  new RpcError(Status.UNAVAILABLE, 'the vault is closed', { trailer: { why: 'night' } });

const ways: readonly [string, AuthorizeFunction, number, ServerOptions?][] = [
  ['denies', () => false, Status.PERMISSION_DENIED],
  ['denies later', later(() => false), Status.PERMISSION_DENIED],
  ['throws', fail(new Error('no vault')), Status.INTERNAL],
  ['rejects', later(fail(new Error('no vault'))), Status.INTERNAL],
  [
    'returns what throws when it is awaited',
    () =>
      Object.defineProperty({}, 'then', { get: fail(new Error('no vault')) }) as unknown as Promise<boolean>,
    Status.INTERNAL,
  ],
  ['throws an error of its own', fail(new RpcError(Status.NOT_FOUND, 'nobody')), Status.NOT_FOUND],
  ['throws UNAVAILABLE', fail(unavailable()), Status.UNAVAILABLE],
  ['rejects with UNAVAILABLE', later(fail(unavailable())), Status.UNAVAILABLE],
  ['has not decided within the limit of the server', never, Status.DEADLINE_EXCEEDED, { timeoutMaxMs: 300 }],
];

describe.each(ways)('authorize %s', (_, authorize, code, options) => {
  test.each(Object.entries(kinds))('%s', async (__, call) => {
    let allowed = false;
    const bed = connect((peer, method) => allowed || authorize(peer, method), options);
    const states: string[] = [];
    await bed.channel.ready();
    bed.channel.on('state', (state) => states.push(state));
    const error = await caught(call(bed.client));
    expect(error).toMatchObject({ code, processed: 'no' });
    expect(Object.keys(error.trailer.toJSON())).toEqual(code === Status.UNAVAILABLE ? ['why'] : []);
    expect([bed.asked, bed.ran]).toEqual([1, []]);
    // The server continues to run, so the client keeps its connection.
    if (options !== undefined) return;
    allowed = true;
    await call(bed.client);
    expect(bed.ran).toHaveLength(1);
    expect(states).toEqual([]);
  });
});

test('a decision that comes too late does not run the handler, and the call may be made again', async () => {
  const answers: ((allowed: boolean) => void)[] = [];
  const bed = connect(() => new Promise((resolve) => answers.push(resolve)));
  await bed.channel.ready();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const call = caught(bed.client.unary({}));
  await until(() => answers.length === 1);
  vi.advanceTimersByTime(authorizeMs);
  expect(await call).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
  const repeated = createClient(StreamsDefinition, bed.channel, { '*': { retry: { backoffMs: 1 } } }).unary(
    {},
  );
  await until(() => answers.length === 2);
  vi.advanceTimersByTime(authorizeMs);
  vi.useRealTimers();
  await until(() => answers.length === 3);
  for (const answer of answers) answer(true);
  await repeated;
  expect(bed.ran).toEqual(['unary']);
});

test('the error of a handler is none of these, though authorize took its time', async () => {
  const channel = createInProcessChannel(
    (server) =>
      server.add(StreamsDefinition, { unary: fail(unavailable()), sum: fail(unavailable()) as never }),
    { authorize: later(() => true) },
  );
  channels.push(channel);
  const client = createClient(StreamsDefinition, channel);
  for (const call of [kinds.unary!, kinds['client stream']!])
    expect(await caught(call(client))).toMatchObject({ code: Status.UNAVAILABLE, processed: 'yes' });
});

test('a handler that passes on the error of another server has run', async () => {
  const passedOn = new RpcError(Status.UNAVAILABLE, 'the vault', { trailer: { 'rdma-rpc-not-run': '1' } });
  const channel = createInProcessChannel((server) =>
    server.add(StreamsDefinition, { unary: fail(passedOn), sum: fail(passedOn) as never }),
  );
  channels.push(channel);
  const client = createClient(StreamsDefinition, channel);
  for (const call of [kinds.unary!, kinds['client stream']!]) {
    const error = await caught(call(client));
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'yes' });
    expect(error.trailer.toJSON()).toEqual({});
  }
});
