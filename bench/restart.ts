/**
 * A restart of a server under many clients: N channels of one process are connected, the server is killed and
 * started anew at the same address, and each channel comes back as it would by itself, by its pauses. Prints
 * a line for each N as JSON: the rate at which they were opened at first, how long it took until the last one
 * was back, and the fullest second as a multiple of that rate. To run by hand, after setup:
 *
 *   node dist/bench/restart.js [--channels 100,1000,10000]
 */
import { fork } from 'node:child_process';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Channel, createChannel, createServer } from 'rdma-rpc';
import { answer, end } from './children.ts';
import { BenchDefinition } from './gen/bench.rdma.ts';
import { handlers } from './handlers.ts';

interface Task {
  readonly address: string;
  readonly channels: number;
}
interface Opened {
  readonly openMs: number;
}
interface Back {
  /** When each was connected again, ms since the epoch. */
  readonly backMs: readonly number[];
  readonly failed: number;
}

/** Channels that are being opened at once, before the restart. */
const opening = 32;
/** A channel that is not back by then has failed. */
const limitMs = 120_000;

async function serve({ address, channels }: Task): Promise<void> {
  const most = Math.max(64, channels);
  const server = createServer({ sessionsMax: most, sessionsPerPeerMax: most }).add(BenchDefinition, handlers);
  await server.listen(address);
  process.send!('ready');
}

/** Resolves when the channel has been connected again; to undefined when it has not within the limit. */
function back(channel: Channel): Promise<number | undefined> {
  return new Promise((settle) => {
    const lost = (state: string): void => {
      if (state === 'ready') return;
      channel.off('state', lost);
      channel.ready({ timeoutMs: limitMs }).then(
        () => settle(performance.timeOrigin + performance.now()),
        () => settle(undefined),
      );
    };
    channel.on('state', lost);
  });
}

async function connect({ address, channels }: Task): Promise<void> {
  const all: Channel[] = [];
  const begun = performance.now();
  const open = async (): Promise<void> => {
    while (all.length < channels) {
      const channel = createChannel(address, { fabric: 'shm' });
      all.push(channel);
      await channel.ready({ timeoutMs: limitMs });
    }
  };
  await Promise.all(Array.from({ length: Math.min(opening, channels) }, open));
  const returns = Promise.all(all.map(back));
  process.send!({ openMs: performance.now() - begun } satisfies Opened);
  const times = (await returns).filter((ms) => ms !== undefined);
  process.send!({ backMs: times, failed: channels - times.length } satisfies Back);
}

/** Most of these times within one second. */
function fullestSecond(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  let first = 0;
  return sorted.reduce((most, ms, index) => {
    while (ms - sorted[first]! >= 1000) ++first;
    return Math.max(most, index - first + 1);
  }, 0);
}

const file = fileURLToPath(import.meta.url);

async function measure(task: Task): Promise<Record<string, number>> {
  const start = (role: string): ReturnType<typeof fork> => fork(file, [role, JSON.stringify(task)]);
  let server = start('server');
  let client: typeof server | undefined;
  try {
    await answer(server);
    client = start('client');
    const { openMs } = await answer<Opened>(client);
    const ended = answer<Back>(client);
    await end(server);
    const killedMs = Date.now();
    server = start('server');
    await answer(server);
    const listensMs = Date.now();
    const { backMs, failed } = await ended;
    const last = backMs.reduce((latest, ms) => Math.max(latest, ms), listensMs);
    const steady = (task.channels * 1000) / openMs;
    return {
      channels: task.channels,
      openedPerSecond: Math.round(steady),
      awaySeconds: (listensMs - killedMs) / 1000,
      backSeconds: Number(((last - listensMs) / 1000).toFixed(1)),
      fullestSecond: fullestSecond(backMs),
      timesSteady: Number((fullestSecond(backMs) / steady).toFixed(2)),
      failed,
    };
  } finally {
    await Promise.all([server, client].map((child) => child && end(child)));
  }
}

const [role = '', text = '{}'] = process.argv.slice(2);
if (role === 'server' || role === 'client') {
  // Keeps the process, whose channels are idle, and ends it with the one that has started it.
  process.once('disconnect', () => process.exit(0));
  await (role === 'server' ? serve : connect)(JSON.parse(text) as Task);
} else {
  const { values } = parseArgs({ options: { channels: { type: 'string', default: '100,1000,10000' } } });
  const socket = join(tmpdir(), `rdma-rpc-restart-${process.pid}.sock`);
  for (const channels of values.channels.split(',').map(Number)) {
    try {
      console.log(JSON.stringify(await measure({ address: `unix:${socket}`, channels })));
    } finally {
      rmSync(socket, { force: true });
      rmSync(`${socket}.lock`, { force: true });
    }
  }
}
