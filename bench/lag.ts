/**
 * Measures how long a server's event loop is kept from its timers while it moves messages of 16 MiB over
 * shared memory. A timer of 1 ms in the server's process measures this. The handlers release the messages
 * that they get, or do nothing. It prints a line of JSON for each kind, in ms. Run it by hand, after setup:
 *
 *   node dist/bench/lag.js [--seconds 5] [--mebibytes 16]
 */
import { fork } from 'node:child_process';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { allocBuffer, configure, createChannel, createClient, createServer, leaseOf } from 'rdma-rpc';
import { answer, end } from './children.ts';
import { BenchDefinition } from './gen/bench.rdma.ts';
import type { Msg } from './peer.ts';

const MiB = 1024 * 1024;
const arenaBytes = 384 * MiB;
/** The number of bytes of a message beside its payload. */
const aroundBytes = 64;
/** The interval of the timer, which is 1 ms. */
const everyMs = 1;
const warmUpMs = 1000;

interface Task {
  readonly address: string;
  readonly method: 'put' | 'echo';
  readonly inFlight: number;
  readonly released: boolean;
  readonly bytes: number;
  readonly seconds: number;
}

interface Lag {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

async function serve({ address, released, bytes, seconds }: Task): Promise<void> {
  configure({ arenaBytes });
  const empty = new Uint8Array(0);
  const release = (request: Msg): void => {
    if (released) leaseOf(request)?.release();
  };
  const server = createServer({ messageMaxBytes: bytes + aroundBytes }).add(BenchDefinition, {
    echo: async (request: Msg) => {
      setImmediate(release, request);
      return request;
    },
    put: async (request: Msg) => {
      release(request);
      return { payload: empty, id: request.payload.length };
    },
  });
  await server.listen(address);
  process.send!('ready');
  await new Promise((resolve) => process.once('message', resolve));
  await sleep(warmUpMs);
  const delays = monitorEventLoopDelay({ resolution: everyMs });
  delays.enable();
  await sleep(1000 * seconds);
  delays.disable();
  const ms = (ns: number): number => Number(Math.max(0, ns / 1e6 - everyMs).toFixed(2));
  const lag = { p50: ms(delays.percentile(50)), p99: ms(delays.percentile(99)), max: ms(delays.max) };
  process.send!(lag satisfies Lag);
}

async function load({ address, method, inFlight, bytes }: Task): Promise<void> {
  configure({ arenaBytes });
  const channel = createChannel(address, { fabric: 'shm', messageMaxBytes: bytes + aroundBytes });
  const client = createClient(BenchDefinition, channel);
  await channel.ready();
  let calls = 0;
  const caller = async (): Promise<void> => {
    const payload = allocBuffer(bytes, channel).bytes;
    const into = allocBuffer(bytes + aroundBytes, channel);
    for (; ; ++calls) await client[method]({ payload, id: 0 }, method === 'echo' ? { into } : {});
  };
  for (let i = 0; i < inFlight; ++i) caller().catch(() => process.exit(0));
  process.on('message', () => process.send!(calls));
  process.send!('ready');
}

const file = fileURLToPath(import.meta.url);

async function measure(task: Task): Promise<object> {
  const start = (role: string): ReturnType<typeof fork> => fork(file, [role, JSON.stringify(task)]);
  const server = start('server');
  let client: typeof server | undefined;
  try {
    await answer(server);
    client = start('client');
    await answer(client);
    server.send('begin');
    const count = (): Promise<number> => {
      const said = answer<number>(client!);
      client!.send('count');
      return said;
    };
    await sleep(warmUpMs);
    const before = await count();
    const lag = await answer<Lag>(server);
    const callsPerSecond = Math.round(((await count()) - before) / task.seconds);
    const { method, inFlight, released } = task;
    return { method, inFlight, released, lagMs: lag, callsPerSecond };
  } finally {
    await Promise.all([server, client].map((child) => child && end(child)));
  }
}

const [role = '', text = '{}'] = process.argv.slice(2);
if (role === 'server' || role === 'client') {
  process.once('disconnect', () => process.exit(0));
  await (role === 'server' ? serve : load)(JSON.parse(text) as Task);
} else {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '5' },
      mebibytes: { type: 'string', default: '16' },
    },
  });
  const socket = join(tmpdir(), `rdma-rpc-lag-${process.pid}.sock`);
  const rest = { bytes: Number(values.mebibytes) * MiB, seconds: Number(values.seconds) };
  for (const [method, inFlight] of [
    ['put', 8],
    ['echo', 2],
  ] as const) {
    for (const released of [true, false]) {
      const task = { address: `unix:${socket}`, method, inFlight, released, ...rest };
      try {
        console.log(JSON.stringify(await measure(task)));
      } finally {
        rmSync(socket, { force: true });
        rmSync(`${socket}.lock`, { force: true });
      }
    }
  }
}
