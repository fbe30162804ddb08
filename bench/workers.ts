/**
 * Measures the gain of a second worker thread. A server with one thread and a server with two threads behind
 * one address run in alternating windows, each with the same two client processes. Run it by hand, after
 * setup:
 *
 *   node dist/bench/workers.js [--rounds 7] [--ms 500] [--bytes 32]
 *
 * It prints a line of JSON for each server, with medians of the rounds. It also prints the capacity of two
 * threads as a multiple of that of one thread: by calls/s, which is meaningful only where each thread has a
 * CPU that no client uses, and by CPU time of the whole server process for each call. Neither side spins,
 * because spinning would count as CPU time.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { isMainThread } from 'node:worker_threads';
import { configure, createChannel, createClient, createServer } from 'rdma-rpc';
import { listenInWorker, serveWorkers } from 'rdma-rpc/workers';
import { answer, end } from './children.ts';
import { cpuMeter } from './cpu.ts';
import { BenchDefinition } from './gen/bench.rdma.ts';
import { handlers } from './handlers.ts';
import { median } from './rows.ts';

interface Task {
  readonly address: string;
  readonly threads: number;
  readonly bytes: number;
}

/** Number of clients, one for each of two threads. */
const clients = 2;
const inFlight = 256;
const file = fileURLToPath(import.meta.url);

async function serve({ address, threads }: Task): Promise<void> {
  await serveWorkers(new URL(import.meta.url), { address, workers: threads });
  process.send!('ready');
}

async function connect({ address, bytes }: Task): Promise<void> {
  configure({ polling: 'event' });
  const channel = createChannel(address);
  await channel.ready();
  const client = createClient(BenchDefinition, channel);
  const payload = new Uint8Array(bytes);
  process.on('message', async (ms: number) => {
    const ends = performance.now() + ms;
    let calls = 0;
    const work = async (): Promise<void> => {
      for (; performance.now() < ends; calls++) await client.echo({ payload, id: calls });
    };
    await Promise.all(Array.from({ length: inFlight }, work));
    process.send!(calls);
  });
  process.send!('ready');
}

interface Window {
  readonly callsPerSecond: number;
  /** CPU time of the server for each call, in microseconds. */
  readonly cpuUs: number;
}

class Pair {
  readonly threads: number;
  readonly #server: ChildProcess;
  readonly #clients: readonly ChildProcess[];

  private constructor(threads: number, server: ChildProcess, others: readonly ChildProcess[]) {
    this.threads = threads;
    this.#server = server;
    this.#clients = others;
  }

  static async start(task: Task): Promise<Pair> {
    const started = async (role: string): Promise<ChildProcess> => {
      const child = fork(file, [role, JSON.stringify(task)]);
      await answer(child);
      return child;
    };
    const server = await started('server');
    const others: ChildProcess[] = [];
    for (let at = 0; at < clients; at++) others.push(await started('client'));
    return new Pair(task.threads, server, others);
  }

  async window(ms: number): Promise<Window> {
    const cpu = cpuMeter([this.#server.pid!]);
    const began = performance.now();
    const counts = await Promise.all(
      this.#clients.map((client) => {
        client.send(ms);
        return answer<number>(client);
      }),
    );
    const seconds = (performance.now() - began) / 1000;
    const { cpuPercent } = cpu();
    const calls = counts.reduce((sum, each) => sum + each, 0);
    return { callsPerSecond: calls / seconds, cpuUs: (cpuPercent * 1e4 * seconds) / calls };
  }

  async end(): Promise<void> {
    await Promise.all([...this.#clients, this.#server].map(end));
  }
}

async function compare(rounds: number, ms: number, bytes: number): Promise<void> {
  const sockets = [1, 2].map((threads) => join(tmpdir(), `rdma-rpc-workers-${process.pid}-${threads}.sock`));
  const pairs: Pair[] = [];
  try {
    for (const [at, socket] of sockets.entries())
      pairs.push(await Pair.start({ address: `unix:${socket}`, threads: at + 1, bytes }));
    const windows: Window[][] = pairs.map(() => []);
    for (let round = -1; round < rounds; round++) {
      for (const [at, pair] of pairs.entries()) {
        const window = await pair.window(ms);
        if (round >= 0) windows[at]!.push(window);
      }
    }
    for (const [at, { threads }] of pairs.entries()) {
      const callsPerSecond = Math.round(median(windows[at]!.map((each) => each.callsPerSecond)));
      const cpuUs = Number(median(windows[at]!.map((each) => each.cpuUs)).toFixed(3));
      console.log(JSON.stringify({ threads, callsPerSecond, cpuUs }));
    }
    const [one = [], two = []] = windows;
    const timesByCalls = median(two.map((each, at) => each.callsPerSecond / one[at]!.callsPerSecond));
    const timesByCpu = median(two.map((each, at) => (2 * one[at]!.cpuUs) / each.cpuUs));
    console.log(
      JSON.stringify({
        timesByCalls: Number(timesByCalls.toFixed(2)),
        timesByCpu: Number(timesByCpu.toFixed(2)),
      }),
    );
  } finally {
    await Promise.all(pairs.map((pair) => pair.end()));
    for (const socket of sockets) rmSync(socket, { force: true });
  }
}

if (isMainThread) {
  const [role = '', text = '{}'] = process.argv.slice(2);
  if (role === 'server' || role === 'client') {
    await (role === 'server' ? serve : connect)(JSON.parse(text) as Task);
  } else {
    const { values } = parseArgs({
      options: {
        rounds: { type: 'string', default: '7' },
        ms: { type: 'string', default: '500' },
        bytes: { type: 'string', default: '32' },
      },
    });
    await compare(Number(values.rounds), Number(values.ms), Number(values.bytes));
  }
} else {
  configure({ polling: 'event' });
  listenInWorker(createServer().add(BenchDefinition, handlers));
}
