/**
 * Tests a session's connection that is reset at any byte that it carries. Every call settles once, its
 * `processed` is correct, and the next connection works.
 */
import {
  type CallOptions,
  createChannel,
  createClient,
  createServer,
  leaseOf,
  type Processed,
  RpcError,
} from 'rdma-rpc';
import { expect, test } from 'vitest';
import { until } from '../channel/bed.ts';
import { EchoDefinition, type EchoMessage } from '../runtime/gen/echo.rdma.ts';
import { type Passage, portOf, Relay } from './proxy.ts';

const cuts = 200;
/**
 * A round of all calls carries fewer bytes than this in each direction, so some cuts come after all calls.
 */
const bytesMax = 1_600_000;
const timeoutMs = 60_000;

/** Returns numbers from 0 to 1, the same in each run. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

interface Planned {
  readonly bytes: number;
  readonly kind: 'echo' | 'put' | 'fetch';
}
const kinds = ['echo', 'put', 'fetch'] as const;
const sizes = [0, 40, 3000, 20_000, 300_000];
const planned: readonly Planned[] = sizes.flatMap((bytes) => kinds.map((kind) => ({ bytes, kind })));

const filled = (bytes: number, number: number): Uint8Array => new Uint8Array(bytes).fill(number & 0xff);
function isFilled(message: EchoMessage, bytes: number, number: number): boolean {
  const right = Buffer.compare(message.payload, filled(bytes, number)) === 0;
  leaseOf(message)?.release();
  return right;
}

test('after 200 bytes of a transfer in either direction', { timeout: 600_000 }, async () => {
  const next = random(20_261_123);
  /** Number of times that each call's handler has run. */
  const runs = new Map<number, number>();
  let torn = 0;
  const run = (request: EchoMessage, bytes: number): void => {
    runs.set(request.number, (runs.get(request.number) ?? 0) + 1);
    if (!isFilled(request, bytes, request.number)) torn++;
  };
  const server = createServer({ fabric: 'tcp' }).add(EchoDefinition, {
    echo: (request) => {
      const bytes = request.payload.byteLength;
      run(request, bytes);
      return { number: request.number, payload: filled(bytes, request.number) };
    },
    behave: (request) => {
      run(request, request.payload.byteLength);
      return { number: request.number };
    },
    fetch: (request) => {
      run(request, 0);
      return { number: request.number, payload: filled(Number(request.text), request.number) };
    },
  });
  const port = portOf(await server.listen('127.0.0.1:0'));
  let cut = { side: 'client' as 'client' | 'server', at: 0 };
  const relay = new Relay(
    () => port,
    ({ index, client, server: behind }: Passage) => {
      // Sidebands and sessions alternate, and only the first session of a round is cut.
      if (index !== 1) return;
      let bytes = 0;
      const from = cut.side === 'client' ? client : behind;
      from.on('data', (chunk: Buffer) => {
        bytes += chunk.byteLength;
        if (bytes < cut.at) return;
        client.resetAndDestroy();
        behind.resetAndDestroy();
      });
    },
  );
  const address = await relay.listen();
  const outcomes: Record<Processed | 'answered', number> = { no: 0, maybe: 0, yes: 0, answered: 0 };
  let calls = 0;
  for (let round = 0; round < cuts; ++round) {
    cut = { side: next() < 0.5 ? 'client' : 'server', at: 1 + Math.floor(bytesMax * next() ** 3) };
    relay.count = 0;
    const channel = createChannel(address, { fabric: 'tcp' });
    const client = createClient(EchoDefinition, channel);
    const options: CallOptions = { timeoutMs };
    const results = await Promise.all(
      planned.map(async ({ kind, bytes }) => {
        const number = ++calls;
        const payload = filled(bytes, number);
        const answer =
          kind === 'echo'
            ? client.echo({ number, payload }, options)
            : kind === 'put'
              ? client.behave({ number, payload }, options)
              : client.fetch({ number, text: String(bytes) }, options);
        const error = await answer.then(
          (message) => {
            expect(message.number).toBe(number);
            expect(isFilled(message, kind === 'put' ? 0 : bytes, number)).toBe(true);
          },
          (reason: unknown) => reason,
        );
        return { number, error };
      }),
    );
    for (const { number, error } of results) {
      const times = runs.get(number) ?? 0;
      expect(times).toBeLessThanOrEqual(1);
      if (error === undefined) {
        expect(times).toBe(1);
        outcomes.answered++;
        continue;
      }
      expect(error).toBeInstanceOf(RpcError);
      const { processed } = error as RpcError;
      outcomes[processed]++;
      if (processed === 'no') expect(times).toBe(0);
      if (processed === 'yes') expect(times).toBe(1);
    }
    await channel.close();
  }
  // Each way to end was seen; otherwise the cuts would be in the wrong places.
  expect(outcomes.answered).toBeGreaterThan(cuts);
  expect(outcomes.maybe).toBeGreaterThan(cuts);
  expect(torn).toBe(0);
  relay.close();
  await until(() => server.sessionCount === 0);
  await server.shutdown({ graceMs: 0 });
});
