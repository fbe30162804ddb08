/**
 * Tests how much of a server's resources one identity may use without affecting other identities: sessions,
 * calls and bytes per second, and memory of large requests.
 */
import { duplexPair } from 'node:stream';
import {
  createClient,
  createServer,
  leaseOf,
  type Quotas,
  type ServerOptions,
  Status,
  stats,
} from 'rdma-rpc';
import { describe, expect, test } from 'vitest';
import { KnownPeer } from '../../runtime/core/peer.ts';
import { quotaAccountsClosed } from '../../runtime/limits.ts';
import { Accounts } from '../../runtime/server/quotas.ts';
import { TokenBucket } from '../../runtime/server/token-bucket.ts';
import { caught, turn, until } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { ends, reach, unixAddress } from './ends.ts';

const KiB = 1024;

/** Starts a server that accepts the identity that a client states. */
async function serve(options: ServerOptions) {
  const server = createServer({
    authenticate: (_, metadata) => String(metadata.get('name')),
    log: () => undefined,
    ...options,
  });
  const kept: unknown[] = [];
  server.add(EchoDefinition, {
    echo: (request) => request,
    behave: (request, { signal }) => {
      kept.push(request);
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    },
    fetch: (request) => {
      leaseOf(request)?.release();
      return { payload: new Uint8Array(request.number) };
    },
  });
  server.add(StreamsDefinition, {
    async *count({ count, bytes }) {
      for (let number = 0; number < count; ++number) yield { number, payload: new Uint8Array(bytes) };
    },
    async sum(items) {
      let number = 0;
      for await (const item of items) number += item.payload.byteLength;
      return { number };
    },
  });
  ends.servers.push(server);
  return { server, address: await server.listen(unixAddress()) };
}
const as = (name: string, address: string) =>
  reach(address, { credentials: { session: () => ({ metadata: { name } }) } });
const exhausted = (option: keyof Quotas) => ({
  code: Status.RESOURCE_EXHAUSTED,
  processed: 'no',
  rawMessage: expect.stringContaining(`(option quotas: ${option} of the server)`),
});

describe('an identity that has used up its quota is refused, and others are not', () => {
  test('quota of sessions', async () => {
    const { server, address } = await serve({ quotas: { sessionsMax: 2 } });
    const two = [as('ann', address), as('ann', address)];
    for (const { client } of two) await client.echo({});
    const { queuePairs } = stats();
    const third = as('ann', address);
    expect(await caught(third.client.echo({}))).toMatchObject(exhausted('sessionsMax'));
    expect(stats().queuePairs).toBe(queuePairs);
    await as('bob', address).client.echo({});
    await two[0]!.channel.close();
    await until(() => server.sessionCount === 2);
    await third.client.echo({}, { waitForReady: true });
  });

  test('quota of calls per second', async () => {
    const { address } = await serve({ quotas: { callsPerSecondMax: 3 } });
    const [ann, again, bob] = [as('ann', address), as('ann', address), as('bob', address)];
    // The first session is ready before the second begins.
    for (const { channel } of [ann, again, bob]) await channel.ready();
    const calls = Array.from({ length: 5 }, (_, i) => (i % 2 ? again : ann).client.echo({}));
    const ended = await Promise.allSettled(calls);
    expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
    for (const each of ended)
      if (each.status === 'rejected') expect(each.reason).toMatchObject(exhausted('callsPerSecondMax'));
    for (let i = 0; i < 3; ++i) await bob.client.echo({});
  });

  test('quota of bytes per second, of requests', async () => {
    const { address } = await serve({ quotas: { bytesPerSecondMax: 64 * KiB } });
    const { client } = as('ann', address);
    // One larger request passes, and then the quota is used up for a long time.
    await client.echo({ payload: new Uint8Array(4096 * KiB) });
    expect(await caught(client.echo({}))).toMatchObject(exhausted('bytesPerSecondMax'));
    await as('bob', address).client.echo({ payload: new Uint8Array(1) });
    // A new connection does not help.
    expect(await caught(as('ann', address).client.echo({}))).toMatchObject(exhausted('bytesPerSecondMax'));
  });

  test('quota of bytes per second, of requests that are not run, but have arrived', async () => {
    const options = { bytesPerSecondMax: 64 * KiB, callsPerSecondMax: 1 };
    const { address } = await serve({ quotas: ({ identity }) => (identity === 'ann' ? options : undefined) });
    const { channel, client } = as('ann', address);
    await channel.ready();
    const payload = new Uint8Array(4096 * KiB);
    const calls = [client.echo({}), client.echo({ payload })].map((call) => call.catch((error) => error));
    expect((await Promise.all(calls))[1]).toMatchObject(exhausted('callsPerSecondMax'));
    expect(await caught(client.echo({}))).toMatchObject(exhausted('bytesPerSecondMax'));
  });

  test.each<[string, ServerOptions, RegExp]>([
    ['a method that there is not', {}, /^UNIMPLEMENTED: /],
    ['a server that is full', { handlersMax: 1 }, /^RESOURCE_EXHAUSTED: .*handlersMax/],
  ])('bytes a second, of requests to %s', async (what, options, told) => {
    const { address } = await serve({ ...options, quotas: { bytesPerSecondMax: 64 * KiB } });
    const { client } = as('ann', address);
    const payload = new Uint8Array(4096 * KiB);
    const aside = new AbortController();
    const kept = what.includes('full') ? [caught(client.behave({}, { signal: aside.signal }))] : [];
    const refused = what.includes('full') ? client.echo({ payload }) : client.missing({ payload });
    expect((await caught(refused)).message).toMatch(told);
    aside.abort();
    await Promise.all(kept);
    let error = await caught(client.echo({}));
    // The handler learns slightly later that the call was cancelled.
    while (/handlersMax/.test(error.message)) error = await caught(client.echo({}));
    expect(error).toMatchObject(exhausted('bytesPerSecondMax'));
  });

  test('quota of bytes per second, of responses', async () => {
    const { address } = await serve({ quotas: { bytesPerSecondMax: 64 * KiB } });
    const { client } = as('ann', address);
    await client.fetch({ number: 4096 * KiB });
    expect(await caught(client.echo({}))).toMatchObject(exhausted('bytesPerSecondMax'));
  });

  test('quota of arena memory of a session', async () => {
    const { address } = await serve({ quotas: { arenaBytesMax: 256 * KiB } });
    const [ann, bob] = [as('ann', address), as('bob', address)];
    const payload = new Uint8Array(100 * KiB);
    const large = caught(ann.client.echo({ payload: new Uint8Array(300 * KiB) }));
    expect(await large).toMatchObject(exhausted('arenaBytesMax'));
    // These handlers keep the memory that they have got.
    const [first, second] = [
      caught(ann.client.behave({ payload }, { timeoutMs: 1000 })),
      caught(ann.client.behave({ payload }, { timeoutMs: 1000 })),
    ];
    const third = caught(ann.client.echo({ payload }, { timeoutMs: 200 }));
    expect((await third).code).toBe(Status.DEADLINE_EXCEEDED);
    for (let i = 0; i < 10; ++i) await bob.client.fetch({ payload });
    await ann.client.echo({ payload: new Uint8Array(1000) });
    await Promise.all([first, second]);
  });
});

describe('streams', () => {
  test('count as calls', async () => {
    const { address } = await serve({ quotas: { callsPerSecondMax: 1 } });
    const { channel } = as('ann', address);
    await channel.ready();
    const client = createClient(StreamsDefinition, channel);
    const sums = await Promise.allSettled([client.sum([]), client.sum([])]);
    expect(sums.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect((sums[1] as PromiseRejectedResult).reason).toMatchObject(exhausted('callsPerSecondMax'));
  });

  test.each(['requests', 'responses'])('end when their %s are too many bytes', async (way) => {
    const { address } = await serve({ quotas: { bytesPerSecondMax: 64 * KiB } });
    const [ann, bob] = ['ann', 'bob'].map((name) =>
      createClient(StreamsDefinition, as(name, address).channel),
    );
    const payload = new Uint8Array(1024 * KiB);
    const items = Array.from({ length: 20 }, () => ({ payload }));
    const stream = async () => {
      for await (const _ of ann!.count({ count: 20, bytes: payload.byteLength })) await turn();
    };
    const error = await caught(way === 'requests' ? ann!.sum(items) : stream());
    expect(error).toMatchObject({ ...exhausted('bytesPerSecondMax'), processed: expect.anything() });
    expect((await bob!.sum([{ payload: new Uint8Array(8) }])).number).toBe(8);
  });
});

describe('a function for quotas', () => {
  test('is called for each connection', async () => {
    const asked: unknown[] = [];
    const quotas = ({ identity }: { identity: string | undefined }): Quotas | undefined => {
      asked.push(identity);
      return identity === 'ann' ? { sessionsMax: 1 } : undefined;
    };
    const { address } = await serve({ quotas });
    for (const name of ['ann', 'bob', 'bob']) await as(name, address).client.echo({});
    expect(await caught(as('ann', address).client.echo({}))).toMatchObject(exhausted('sessionsMax'));
    expect(asked).toEqual(['ann', 'bob', 'bob', 'ann']);
  });

  test.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('the vault is at 10.0.0.1');
      },
    ],
    ['returns a promise', async () => ({ sessionsMax: 1 })],
    ['returns nonsense', () => ({ sessionsMax: 'many' })],
    ['returns a name that is none', () => ({ sessions: 1 })],
  ])('that %s costs that connection, and its client does not learn why', async (_, quotas) => {
    const lines: string[] = [];
    const { server, address } = await serve({ quotas: quotas as never, log: (line) => lines.push(line) });
    const error = await caught(as('ann', address).client.echo({}));
    expect(error).toMatchObject({
      code: Status.UNAVAILABLE,
      processed: 'no',
      message: expect.stringContaining('cannot tell what this client may use (option quotas of the server)'),
    });
    expect(error.message).not.toMatch(/vault|many/);
    await until(() => lines.length > 0);
    expect(lines[0]).toMatch(/option quotas of the server\): ./);
    expect(server.sessionCount).toBe(0);
  });
});

test.each<[object, RegExp]>([
  [{ sessions: 1 }, /quotas: there is no option sessions; did you mean sessionsMax/],
  [{ callsPerSecondMax: 0 }, /quotas: callsPerSecondMax: 0 is not an integer from 1/],
])('quotas that cannot be meant are found at once: %j', (quotas, reason) => {
  expect(() => createServer({ quotas })).toThrow(reason);
});

describe('a bucket of tokens', () => {
  test('has tokens for one second at first, then gets tokens as time passes', () => {
    const bucket = new TokenBucket(10, 1000);
    let taken = 0;
    for (let nowMs = 1000; nowMs <= 3000; nowMs += 50) {
      for (; bucket.has(nowMs); bucket.take(1)) ++taken;
    }
    expect(taken).toBe(30);
    expect(bucket.has(3099)).toBe(false);
    expect(bucket.has(1_000_000)).toBe(true);
  });

  test('saves no more than that while it is not used', () => {
    const bucket = new TokenBucket(10, 0);
    for (const nowMs of [1_000_000, 2_000_000]) {
      let taken = 0;
      for (; taken < 1000 && bucket.has(nowMs); bucket.take(1)) ++taken;
      expect(taken).toBe(10);
    }
  });

  test('lets one larger amount pass, and waits until it is paid off', () => {
    const bucket = new TokenBucket(100, 0);
    bucket.take(1000);
    expect([8000, 8999, 9010].map((nowMs) => bucket.has(nowMs))).toEqual([false, false, true]);
  });

  test('gets no tokens from a clock that stands still or goes back', () => {
    const bucket = new TokenBucket(1, 5000);
    bucket.take(1);
    expect([5000, 100, 5999, 6000].map((nowMs) => bucket.has(nowMs))).toEqual([false, false, false, true]);
  });

  test('keeps its debt when the rate changes', () => {
    const bucket = new TokenBucket(10, 0);
    bucket.take(30);
    bucket.change(1000, 0);
    expect([10, 22].map((nowMs) => bucket.has(nowMs))).toEqual([false, true]);
  });
});

describe('accounts', () => {
  const peer = (identity: string | undefined) =>
    new KnownPeer('10.0.0.1:5', '', identity === undefined ? {} : { identity });

  test('of 10,000 identities that come and go take limited memory', async () => {
    const accounts = new Accounts({ callsPerSecondMax: 1 });
    for (let i = 0; i < 10_000; ++i) {
      const [duplex] = duplexPair();
      accounts.enter(peer(`user:${i}`), duplex);
      duplex.destroy();
      if (i % 100 === 99) await turn();
    }
    await until(() => accounts.size <= quotaAccountsClosed);
    expect(accounts.size).toBe(quotaAccountsClosed);
  });

  test.each([0, 1, 1000])('of a client that reconnects %d ms later keep their debt', async (laterMs) => {
    let nowMs = 0;
    const accounts = new Accounts({ callsPerSecondMax: 1, bytesPerSecondMax: 1000 }, () => nowMs);
    const [one] = duplexPair();
    const account = accounts.enter(peer('ann'), one);
    expect(account.refusal('a/B', nowMs)).toBeUndefined();
    account.spend(10_000);
    one.destroy();
    await until(() => one.closed);
    await turn();
    nowMs = laterMs;
    const [two, three] = [duplexPair()[0], duplexPair()[0]];
    // The bytes take nine seconds; the other identity has no deficit.
    expect(accounts.enter(peer('ann'), two).refusal('a/B', nowMs)?.text).toMatch(/bytesPerSecondMax/);
    expect(accounts.enter(peer('bob'), three).refusal('a/B', nowMs)).toBeUndefined();
  });

  test('a client that reconnects with another quota still owes its earlier use', async () => {
    const quotas = { callsPerSecondMax: 1, bytesPerSecondMax: 1000 };
    const accounts = new Accounts(
      () => quotas,
      () => 0,
    );
    const account = accounts.enter(peer('ann'), duplexPair()[0]);
    account.spend(10_000);
    quotas.bytesPerSecondMax = 2000;
    quotas.callsPerSecondMax = 5;
    expect(accounts.enter(peer('ann'), duplexPair()[0])).toBe(account);
    expect(account.exceeded(0)).toEqual(expect.stringContaining('its 2000 bytes a second'));
    // The identity owes 9,000 bytes, which take 4,500 ms at the new rate. Then one of the five calls passes.
    expect([4400, 4600].map((nowMs) => account.refusal('a/B', nowMs) === undefined)).toEqual([false, true]);
  });

  test('of clients without an identity are one account', () => {
    let nowMs = 0;
    const accounts = new Accounts({ callsPerSecondMax: 1 }, () => nowMs);
    const [one, two] = duplexPair();
    const account = accounts.enter(peer(undefined), one);
    expect(accounts.enter(peer(undefined), two)).toBe(account);
    expect([account.refusal('a/B', 0), account.refusal('a/B', 999)]).toEqual([
      undefined,
      {
        status: Status.RESOURCE_EXHAUSTED,
        text: expect.stringMatching(/^a\/B: this client has made its 1 calls/),
      },
    ]);
    nowMs = 1000;
    expect(account.refusal('a/B', nowMs)).toBeUndefined();
  });

  test('count no connection that was closed before it had an account', async () => {
    const accounts = new Accounts({ sessionsMax: 1 });
    const [duplex] = duplexPair();
    duplex.destroy();
    await until(() => duplex.closed);
    expect(() => accounts.enter(peer('ann'), duplex)).toThrow(/was closed/);
    expect(accounts.size).toBe(0);
  });
});
