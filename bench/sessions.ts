/**
 * Measures the cost of many sessions. N sessions connect a server process and a client process; first all are
 * idle except one, then all are active. It prints a line of JSON for each N, with the memory of the server's
 * process: resident, and registered by its devices (`memoryBytes`). Run it by hand, after setup:
 *
 *   node dist/bench/sessions.js [--fabric shm] [--sessions 1,10,100,1000] [--ms 500] [--rounds 3]
 *
 * The counts of one fabric are measured in separate pairs of processes, one after the other, and again in
 * each round.
 */
import { fork } from 'node:child_process';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Channel, createChannel, createClient, createServer, stats } from 'rdma-rpc';
import { answer, end } from './children.ts';
import { cpuMeter, residentBytes } from './cpu.ts';
import { BenchDefinition } from './gen/bench.rdma.ts';
import { handlers } from './handlers.ts';

interface Task {
  address: string;
  fabric: 'shm' | 'shm-fd' | 'tcp';
  sessions: number;
  ms: number;
}

/** Number of calls in flight, of the one active session, and of all sessions together. */
const inFlight = { one: 16, all: 256 };
/** The number of sessions that are opened at the same time. */
const opening = 32;
/** The maximum number of sessions that a server accepts, all of which come from one client here. */
const sessionsMax = 16_384;
const payload = new Uint8Array(32);

async function serve({ address }: Task): Promise<void> {
  const server = createServer({ sessionsMax, sessionsPerPeerMax: sessionsMax }).add(
    BenchDefinition,
    handlers,
  );
  await server.listen(address);
  process.on('message', () => {
    const { memoryBytes, openFds } = stats();
    process.send!({ memoryBytes, openFds });
  });
}

async function connect({ address, fabric, sessions, ms }: Task): Promise<void> {
  const channels: Channel[] = [];
  const started = performance.now();
  const open = async (): Promise<void> => {
    while (channels.length < sessions) {
      const channel = createChannel(address, { fabric, timeoutMs: 30_000 });
      channels.push(channel);
      await channel.ready();
    }
  };
  await Promise.all(Array.from({ length: Math.min(opening, sessions) }, open));
  process.send!({ openMs: performance.now() - started });
  const clients = channels.map((channel) => createClient(BenchDefinition, channel));
  process.on('message', async (active: number) => {
    const ends = performance.now() + ms;
    let calls = 0;
    const depth = active === 1 ? inFlight.one : inFlight.all;
    const work = async (first: number): Promise<void> => {
      for (let at = first; performance.now() < ends; at = (at + depth) % Math.max(active, depth), calls++) {
        await clients[at % active]!.echo({ payload, id: at });
      }
    };
    await Promise.all(Array.from({ length: depth }, (_, first) => work(first)));
    process.send!({ callsPerSecond: (calls * 1000) / ms });
  });
}

async function measure(task: Task): Promise<Record<string, number | string>> {
  const file = fileURLToPath(import.meta.url);
  const server = fork(file, ['server', JSON.stringify(task)]);
  await answer(server);
  const empty = residentBytes(server.pid!);
  const client = fork(file, ['client', JSON.stringify(task)]);
  try {
    const { openMs } = await answer<{ openMs: number }>(client);
    const run = async (active: number): Promise<number> => {
      client.send(active);
      return (await answer<{ callsPerSecond: number }>(client)).callsPerSecond;
    };
    await new Promise((done) => setTimeout(done, task.ms));
    const resident = residentBytes(server.pid!) - empty;
    const cpu = cpuMeter([server.pid!, client.pid!]);
    await new Promise((done) => setTimeout(done, task.ms));
    const { cpuPercent } = cpu();
    server.send('stats');
    const { memoryBytes, openFds } = await answer<{ memoryBytes: number; openFds: number }>(server);
    await run(1);
    const oneActive = await run(1);
    await run(task.sessions);
    const allActive = await run(task.sessions);
    const used = residentBytes(server.pid!) - empty;
    return {
      fabric: task.fabric,
      sessions: task.sessions,
      opensPerSecond: Math.round((task.sessions * 1000) / openMs),
      idleCpuPercent: Number(cpuPercent.toFixed(2)),
      idleKiBEach: Math.round(resident / 1024 / task.sessions),
      usedKiBEach: Math.round(used / 1024 / task.sessions),
      emptyMiB: Math.round(empty / 2 ** 20),
      memoryMiB: Number((memoryBytes / 2 ** 20).toFixed(1)),
      openFds,
      oneActive: Math.round(oneActive),
      allActive: Math.round(allActive),
    };
  } finally {
    await Promise.all([client, server].map(end));
  }
}

const [role = '', text = '{}'] = process.argv.slice(2);
if (role === 'server' || role === 'client') {
  await (role === 'server' ? serve : connect)(JSON.parse(text) as Task);
  if (role === 'server') process.send!('ready');
} else {
  const { values } = parseArgs({
    options: {
      fabric: { type: 'string', default: 'shm' },
      sessions: { type: 'string', default: '1,10,100,1000' },
      ms: { type: 'string', default: '500' },
      rounds: { type: 'string', default: '1' },
    },
  });
  const socket = join(tmpdir(), `rdma-rpc-sessions-${process.pid}.sock`);
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const sessions of values.sessions.split(',').map(Number)) {
      const fabric = values.fabric as Task['fabric'];
      const address = fabric === 'tcp' ? `127.0.0.1:${20_000 + (process.pid % 20_000)}` : `unix:${socket}`;
      console.log(JSON.stringify(await measure({ address, fabric, sessions, ms: Number(values.ms) })));
      rmSync(socket, { force: true });
    }
  }
}
