/**
 * Implements the client processes of the soak. `node traffic.js ADDRESS OPTIONS last` makes calls of every
 * kind, which end in every way, for the time that an order gives. Then it reports the resources that it still
 * holds, and waits for the next order. With `close`, `exit` or `killed` instead of `last` it makes some calls
 * and ends in that way.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  allocBuffer,
  type ChannelOptions,
  configure,
  createChannel,
  createClient,
  leaseOf,
  RpcError,
} from 'rdma-rpc';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { type ItemInit, StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { type Sample, sampled } from './sample.ts';

export interface Order {
  /** Time in milliseconds for which to make calls; 0 asks for a sample instead. */
  readonly trafficMs: number;
}
export interface Told {
  readonly ready?: boolean;
  readonly calls?: number;
  /** Errors that no call may have. */
  readonly wrong?: readonly string[];
  readonly sample?: Sample;
}

const [, , address = '', given = '{}', role = 'last'] = process.argv;
// Unused registrations must be gone when a sample is taken.
configure({ mrCacheIdleMs: 200 });
const channel = createChannel(address, JSON.parse(given) as ChannelOptions);
const client = createClient(EchoDefinition, channel);
const streams = createClient(StreamsDefinition, channel);
const lanes = 6;
const large = 300_000;
let calls = 0;
const wrong = new Map<string, number>();

const any = (below: number): number => Math.floor(Math.random() * below);
const bytes = (): number => (any(2) === 0 ? any(2000) : any(large));

async function* items(count: number): AsyncIterable<ItemInit> {
  for (let number = 0; number < count; ++number) yield { number, payload: new Uint8Array(bytes()) };
}

const kinds: readonly ((options: { timeoutMs: number; signal?: AbortSignal }) => Promise<unknown>)[] = [
  async (options) => leaseOf(await client.echo({ payload: new Uint8Array(bytes()) }, options))?.release(),
  // This response is never released; the garbage collector frees its memory.
  (options) => client.fetch({ number: bytes() }, options),
  (options) => client.behave({ text: 'check', payload: new Uint8Array(bytes()), number: any(20) }, options),
  (options) => client.echo({ text: 'x'.repeat(bytes()) }, options),
  async (options) => {
    const into = allocBuffer(large + 64, channel);
    await client.fetch({ number: bytes() }, { ...options, into }).finally(() => into.release());
  },
  async (options) => {
    for await (const item of streams.count({ count: any(8), bytes: bytes() }, options)) {
      leaseOf(item)?.release();
      if (any(10) === 0) break;
    }
  },
  (options) => streams.sum(items(any(8)), options),
  async (options) => {
    for await (const item of streams.echo(items(any(8)), options)) leaseOf(item)?.release();
  },
];

async function lane(endMs: number): Promise<void> {
  while (performance.now() < endMs) {
    const kind = kinds[any(kinds.length)]!;
    const misfortune = any(4);
    const timeoutMs = misfortune === 0 ? 1 + any(15) : 60_000;
    const signal = misfortune === 1 ? AbortSignal.timeout(1 + any(15)) : undefined;
    ++calls;
    try {
      await kind({ timeoutMs, ...(signal === undefined ? {} : { signal }) });
    } catch (error) {
      const told = error instanceof RpcError ? error.codeName : String(error);
      const expected = misfortune === 0 ? 'DEADLINE_EXCEEDED' : misfortune === 1 ? 'CANCELLED' : '';
      if (told !== expected) wrong.set(String(error), (wrong.get(String(error)) ?? 0) + 1);
    }
    await sleep(0);
  }
}

const tell = (told: Told): void => {
  process.send?.(told);
};

async function traffic(ms: number): Promise<void> {
  const endMs = performance.now() + ms;
  await Promise.all(Array.from({ length: lanes }, () => lane(endMs)));
}

await client.echo({}, { waitForReady: true, timeoutMs: 60_000 });
if (role === 'last') {
  process.on('message', async ({ trafficMs }: Order) => {
    await traffic(trafficMs);
    const sample = await sampled();
    tell({ calls, wrong: [...wrong].map(([text, times]) => `${times} times: ${text}`), sample });
  });
  process.on('disconnect', () => void channel.close());
  tell({ ready: true });
} else {
  const going = traffic(1000);
  if (role === 'killed') setTimeout(() => process.kill(process.pid, 'SIGKILL'), 500);
  if (role === 'exit') setTimeout(() => process.exit(0), 500);
  await going;
  await channel.close();
  process.disconnect?.();
}
