/**
 * Runs as a client process with mixed traffic. Half of the calls are patient: they have no deadline and must
 * get the right answer. The other half are hasty: they have deadlines, cancellations, large messages both
 * ways, reply buffers and streams. slow-moments.ts starts it with options as JSON in argv[2]; it sends
 * 'going', and at the end its report.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  allocBuffer,
  type ChannelOptions,
  createChannel,
  createClient,
  type Lease,
  leaseOf,
  RpcError,
  stats,
} from 'rdma-rpc';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { type ItemInit, StreamsDefinition } from '../stream/gen/stream.rdma.ts';

export interface LoadOptions {
  readonly address: string;
  readonly channel: ChannelOptions;
  readonly ms: number;
  /** The size of large messages. */
  readonly bytes: number;
  /** The longest deadline of hasty calls, in milliseconds. */
  readonly hastyMs: number;
  /** Calls keep the server's thread busy for this time, again and again. */
  readonly busyMs: number;
}

export interface LoadReport {
  patient: number;
  /** Errors of patient calls by text, with their number. */
  failed: Record<string, number>;
  hasty: number;
  /** Numbers of hasty calls, by the way in which they ended. */
  ended: Record<string, number>;
  /** Number of times that the connection was lost. */
  lost: number;
  /**
   * The longest time that a hasty call took beyond its deadline while the client's own thread was running.
   */
  lateMs: number;
  calls: Record<'callsReleasedLate' | 'callsPendingRelease' | 'protocolErrors' | 'lateResponses', number>;
}

/**
 * The byte that a caller writes to the buffers of a call that has ended. A handler that sees it has read the
 * request too late.
 */
export const afterwards = 0xa5;

const options = JSON.parse(process.argv[2] ?? '{}') as LoadOptions;
const channel = createChannel(options.address, options.channel);
const client = createClient(EchoDefinition, channel);
const streams = createClient(StreamsDefinition, channel);
const report: LoadReport = {
  patient: 0,
  failed: {},
  hasty: 0,
  ended: {},
  lost: 0,
  lateMs: 0,
  calls: { callsReleasedLate: 0, callsPendingRelease: 0, protocolErrors: 0, lateResponses: 0 },
};
const count = (counts: Record<string, number>, name: string): void => {
  counts[name] = (counts[name] ?? 0) + 1;
};
channel.on('state', (state) => {
  if (state !== 'ready' && state !== 'closed') ++report.lost;
});

// A guest on a busy host may need long for its first connection.
for (const giveUpMs = performance.now() + 90_000; ; ) {
  try {
    await client.echo({}, { waitForReady: true });
    break;
  } catch (error) {
    if (performance.now() > giveUpMs) throw error;
  }
}
report.lost = 0;
const end = performance.now() + options.ms;
const on = (): boolean => performance.now() < end;
/** Time for which the thread has not run; a stopped process cannot keep a deadline. */
let lagMs = 0;
let lastMs = performance.now();
const clock = setInterval(() => {
  const now = performance.now();
  lagMs += Math.max(0, now - lastMs - 50);
  lastMs = now;
}, 10);

async function patient(call: () => Promise<unknown>): Promise<void> {
  while (on()) {
    try {
      await call();
      ++report.patient;
    } catch (error) {
      count(report.failed, error instanceof Error ? error.message : String(error));
      await sleep(10);
    }
    await sleep(1);
  }
}

async function hasty(
  call: (timeoutMs: number, signal: AbortSignal | undefined) => Promise<unknown>,
): Promise<void> {
  while (on()) {
    ++report.hasty;
    const timeoutMs = 1 + Math.floor(Math.random() * options.hastyMs);
    const aborts = Math.random() < 0.3;
    const beganMs = performance.now();
    const lagBefore = lagMs;
    try {
      const signal = aborts ? AbortSignal.timeout(timeoutMs) : undefined;
      await call(aborts ? 60_000 : timeoutMs, signal);
      count(report.ended, 'OK');
    } catch (error) {
      count(report.ended, error instanceof RpcError ? error.codeName : String(error));
      const lateMs = performance.now() - beganMs - timeoutMs - (lagMs - lagBefore);
      report.lateMs = Math.max(report.lateMs, lateMs);
    }
    await sleep(1);
  }
}

const same = (bytes: Uint8Array, length: number, value: number): boolean =>
  bytes.length === length && bytes.every((byte) => byte === value);

async function echoed(bytes: number, value: number): Promise<void> {
  const answer = await client.behave({
    text: 'check',
    payload: new Uint8Array(bytes).fill(value),
    number: 0,
  });
  const right = same(answer.payload, bytes, value);
  leaseOf(answer)?.release();
  if (!right) throw new Error('another answer');
}

async function* items(): AsyncIterable<ItemInit> {
  for (let number = 0; number < 4; ++number)
    yield { number, payload: new Uint8Array(number % 2 === 0 ? 10 : options.bytes) };
}

/** Half of them are leases, which every fabric sends without a copy. */
const requests = Array.from({ length: 4 }, (_, lane) =>
  lane % 2 === 0 ? new Uint8Array(options.bytes) : allocBuffer(options.bytes, channel).bytes,
);
let spare: Lease | undefined;

await Promise.all([
  ...Array.from({ length: 8 }, (_, lane) => patient(() => echoed(10, lane + 1))),
  ...Array.from({ length: 2 }, (_, lane) => patient(() => echoed(options.bytes, 100 + lane))),
  patient(async () => {
    let seen = 0;
    for await (const item of streams.count({ count: 5, bytes: options.bytes })) {
      if (item.number !== seen++) throw new Error('another message');
      leaseOf(item)?.release();
    }
    if (seen !== 5) throw new Error('a stream is short');
  }),
  patient(async () => {
    if ((await streams.sum(items())).number !== 6) throw new Error('another sum');
    await sleep(10);
  }),
  ...requests.map((payload, lane) =>
    hasty(async (timeoutMs, signal) => {
      payload.fill(lane + 1);
      try {
        await client.behave(
          { text: 'check', payload, number: Math.floor(Math.random() * 20) },
          { timeoutMs, signal },
        );
      } finally {
        payload.fill(afterwards);
      }
    }),
  ),
  ...Array.from({ length: 3 }, () =>
    hasty(async (timeoutMs, signal) => {
      leaseOf(await client.fetch({ number: options.bytes }, { timeoutMs, signal }))?.release();
    }),
  ),
  hasty(async (timeoutMs, signal) => {
    // The message is kept, as an application may do, until it is garbage.
    if (spare === undefined || spare.released) spare = allocBuffer(options.bytes + 64, channel);
    const into = spare;
    try {
      await client.fetch({ number: options.bytes }, { timeoutMs, signal, into });
    } finally {
      if (!into.released) into.bytes.fill(afterwards);
    }
    if (into.released) throw new Error('a lease was lost by a call that was answered');
  }),
  hasty(async (timeoutMs, signal) => {
    await sleep(10); // Garbage collection frees its messages.
    for await (const item of streams.echo(items(), { timeoutMs, signal })) leaseOf(item)?.release();
  }),
  (async () => {
    // This request has a deadline, too, because it makes the server busy and is not a patient call.
    while (on() && options.busyMs > 0) {
      await client
        .behave({ text: 'busy', number: options.busyMs }, { timeoutMs: 60_000 })
        .catch(() => undefined);
      await sleep(options.busyMs);
    }
  })(),
  (async () => {
    process.send?.('going');
  })(),
]);
clearInterval(clock);
spare?.release();
for (const name of Object.keys(report.calls) as (keyof LoadReport['calls'])[])
  report.calls[name] = stats()[name];
await client.echo({}).catch((error: RpcError) => count(report.failed, `the last one: ${error.message}`));
if (Object.keys(report.ended).some((name) => !['OK', 'DEADLINE_EXCEEDED', 'CANCELLED'].includes(name)))
  count(report.failed, `hasty: ${JSON.stringify(report.ended)}`);
process.send?.(report);
await channel.close();
process.disconnect();
