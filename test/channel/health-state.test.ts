/**
 * Tests the state of an address while its health service has not answered, and when the stream of answers
 * ends.
 */
import { createClient, RpcError, Status } from 'rdma-rpc';
import { HealthCheckResponse_ServingStatus as Code, HealthDefinition, healthCheck } from 'rdma-rpc/health';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, until } from './bed.ts';

/** The streams that the health services of a test have received, each ended by the test. */
interface Watch {
  readonly address: string;
  /** Sends a status; undefined ends the stream, and an error makes it fail. */
  say(next: Code | RpcError | undefined): void;
}

let bed: Bed;
let watches: Watch[];
beforeEach(() => {
  bed = new Bed();
  watches = [];
});
afterEach(() => bed.close());

/** Starts servers whose health services say what the test says. */
function start(...addresses: string[]): void {
  bed.start(...addresses);
  for (const address of addresses) {
    async function* watch(): AsyncGenerator<{ status: Code }> {
      for (;;) {
        const next = await new Promise<Code | RpcError | undefined>((say) => {
          watches.push({ address, say });
        });
        if (next === undefined) return;
        if (next instanceof RpcError) throw next;
        yield { status: next };
      }
    }
    const unused = (): never => {
      throw new RpcError(Status.UNIMPLEMENTED, 'not used here');
    };
    bed.at(address).server.add(HealthDefinition, { check: unused, list: unused, watch });
  }
}

/** Says this on the stream of an address, when the server waits for it. */
async function say(address: string, next: Code | RpcError | undefined): Promise<void> {
  await until(() => watches.some((watch) => watch.address === address));
  const at = watches.findIndex((watch) => watch.address === address);
  watches.splice(at, 1)[0]!.say(next);
}

function open(...addresses: string[]) {
  start(...addresses);
  const channel = bed.channel(addresses, { healthCheck: healthCheck(), backoffMs: 1, backoffMaxMs: 1 });
  const client = createClient(EchoDefinition, channel);
  return { channel, client, states: () => channel.addresses.map(({ state }) => state).join(' ') };
}

afterEach(() => {
  for (const watch of watches) watch.say(undefined);
});

test('an address is connecting until its health service has answered', async () => {
  const { channel, client, states } = open('a:1', 'b:1');
  const call = client.fetch({});
  await until(() => watches.length === 2);
  expect(states()).toBe('connecting connecting');
  expect(channel.state).toBe('connecting');
  await say('b:1', Code.SERVING);
  expect(await call).toMatchObject({ text: 'b:1' });
  expect(states()).toBe('connecting ready');
  expect(channel.state).toBe('ready');
  for (let i = 0; i < 10; ++i) expect(await client.fetch({})).toMatchObject({ text: 'b:1' });
  await say('a:1', Code.NOT_SERVING);
  await until(() => states() === 'unhealthy ready');
  await say('a:1', Code.SERVING);
  await until(() => states() === 'ready ready');
});

test('with several connections, one that serves is enough', async () => {
  start('a:1');
  const channel = bed.channel(['a:1'], { healthCheck: healthCheck(), connectionsPerAddress: 2 });
  const ready = channel.ready();
  await until(() => watches.length === 2);
  expect(channel.addresses).toMatchObject([{ state: 'connecting' }]);
  await say('a:1', Code.NOT_SERVING);
  await say('a:1', Code.SERVING);
  await ready;
  await until(() => channel.addresses[0]!.state === 'ready');
});

test.each<[string, RpcError | undefined]>([
  ['ends', undefined],
  ['fails', new RpcError(Status.INTERNAL, 'the health service is broken')],
])('when the stream %s, the address takes no calls until a new one says SERVING', async (_, end) => {
  const { channel, client, states } = open('a:1', 'b:1');
  const ready = channel.ready();
  await say('a:1', Code.SERVING);
  await say('b:1', Code.SERVING);
  await ready;
  await until(() => states() === 'ready ready');
  await say('a:1', end);
  await until(() => states() === 'unhealthy ready');
  for (let i = 0; i < 10; ++i) expect(await client.fetch({})).toMatchObject({ text: 'b:1' });
  // Several streams in turn may end without an answer.
  for (let i = 0; i < 20; ++i) await say('a:1', end);
  expect(states()).toBe('unhealthy ready');
  await say('a:1', Code.SERVING);
  await until(() => states() === 'ready ready');
  expect(bed.dialled).toHaveLength(2);
});

test('an answer that is no status is not SERVING', async () => {
  const { channel, states } = open('a:1', 'b:1');
  const ready = channel.ready();
  await say('a:1', 77 as Code);
  await say('b:1', Code.SERVING);
  await ready;
  await until(() => states() === 'unhealthy ready');
});
