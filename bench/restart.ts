/**
 * Measures a restart of a server under many clients. N channels of one process are connected. The server is
 * killed and restarted at the same address. Each channel then reconnects by itself, after its back-off. It
 * prints a line of JSON for each N: the rate at which the channels were opened at first, the time until the
 * last channel was back, and the fullest second as a multiple of that rate. Run it by hand, after setup:
 *
 *   node dist/bench/restart.js [--channels 100,1000,10000] [--away MS]     MS: time without a server, default
 * 0
 */
import { fork } from 'node:child_process';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as passed } from 'node:timers/promises';
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
  /** The times at which each channel lost its server, and was connected again, in ms since the epoch. */
  readonly lostMs: readonly number[];
  readonly backMs: readonly number[];
  readonly failed: number;
  readonly attempts: number;
  /** The number of attempts that each reason has ended. */
  readonly reasons: Record<string, number>;
  /** CPU time of the client's process after the server's end. */
  readonly cpuSeconds: number;
}

/** The number of channels that are opened at the same time, before the restart. */
const opening = 32;
/** A channel that is not connected again after this time, in milliseconds, has failed. */
const limitMs = 120_000;

async function serve({ address, channels }: Task): Promise<void> {
  const most = Math.max(64, channels);
  const server = createServer({ sessionsMax: most, sessionsPerPeerMax: most }).add(BenchDefinition, handlers);
  await server.listen(address);
  process.send!('ready');
}

const now = (): number => performance.timeOrigin + performance.now();

/** Records what happens to all channels after the end of their server. */
class Returns {
  readonly lostMs: number[] = [];
  readonly backMs: number[] = [];
  attempts = 0;
  readonly reasons: Record<string, number> = {};

  /** Resolves when the channel has been connected again, or when the time limit has passed. */
  async watch(channel: Channel): Promise<void> {
    await new Promise<void>((resolve) => {
      channel.once('state', () => resolve());
      channel.on('state', (state, error) => this.#count(state, error?.rawMessage));
    });
    this.lostMs.push(now());
    await channel.ready({ timeoutMs: limitMs }).then(
      () => this.backMs.push(now()),
      () => undefined,
    );
  }

  #count(state: string, error = ''): void {
    if (state === 'connecting') ++this.attempts;
    if (state !== 'failing') return;
    const reason = error.replace(/^cannot connect to \S+: /, '').replace(/\d+/g, 'N');
    this.reasons[reason] = (this.reasons[reason] ?? 0) + 1;
  }
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
  const returns = new Returns();
  const ended = Promise.all(all.map((channel) => returns.watch(channel)));
  process.send!({ openMs: performance.now() - begun } satisfies Opened);
  const before = process.cpuUsage();
  await ended;
  const { lostMs, backMs, attempts, reasons } = returns;
  const { user, system } = process.cpuUsage(before);
  const failed = channels - backMs.length;
  const cpuSeconds = (user + system) / 1e6;
  process.send!({ lostMs, backMs, failed, attempts, reasons, cpuSeconds } satisfies Back);
}

/** Returns the largest number of these times within one second. */
function fullestSecond(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  let first = 0;
  return sorted.reduce((most, ms, index) => {
    while (ms - sorted[first]! >= 1000) ++first;
    return Math.max(most, index - first + 1);
  }, 0);
}

const file = fileURLToPath(import.meta.url);

async function measure(task: Task, awayMs: number): Promise<object> {
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
    await passed(awayMs);
    server = start('server');
    await answer(server);
    const listensMs = Date.now();
    const { lostMs, backMs, failed, attempts, reasons, cpuSeconds } = await ended;
    const latest = (times: readonly number[]): number => times.reduce((most, ms) => Math.max(most, ms), 0);
    const seconds = (fromMs: number, toMs: number): number => Number(((toMs - fromMs) / 1000).toFixed(1));
    const steady = (task.channels * 1000) / openMs;
    return {
      channels: task.channels,
      openedPerSecond: Math.round(steady),
      awaySeconds: seconds(killedMs, listensMs),
      noticedSeconds: seconds(killedMs, latest(lostMs)),
      backSeconds: seconds(listensMs, latest(backMs)),
      fullestSecond: fullestSecond(backMs),
      timesSteady: Number((fullestSecond(backMs) / steady).toFixed(2)),
      failed,
      attempts,
      reasons,
      clientCpuSeconds: Number(cpuSeconds.toFixed(1)),
    };
  } finally {
    await Promise.all([server, client].map((child) => child && end(child)));
  }
}

const [role = '', text = '{}'] = process.argv.slice(2);
if (role === 'server' || role === 'client') {
  // The listener keeps the process alive while its channels are idle, and ends it together with the process
  // that has started it.
  process.once('disconnect', () => process.exit(0));
  await (role === 'server' ? serve : connect)(JSON.parse(text) as Task);
} else {
  const { values } = parseArgs({
    options: {
      channels: { type: 'string', default: '100,1000,10000' },
      away: { type: 'string', default: '0' },
    },
  });
  const socket = join(tmpdir(), `rdma-rpc-restart-${process.pid}.sock`);
  for (const channels of values.channels.split(',').map(Number)) {
    try {
      console.log(
        JSON.stringify(await measure({ address: `unix:${socket}`, channels }, Number(values.away))),
      );
    } finally {
      rmSync(socket, { force: true });
      rmSync(`${socket}.lock`, { force: true });
    }
  }
}
