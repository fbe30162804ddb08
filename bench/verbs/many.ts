/**
 * Measures the cost of many sessions on the shared receives of an RDMA device: the memory that the server
 * registers for each session, and the SENDs that have found no receive. Each of the two processes has a
 * device. bench/verbs/main.ts starts it on the machine that has the devices:
 *
 *   node dist/bench/verbs/many.js TASK
 */
import { fork } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Channel, createChannel, createClient, createServer, stats } from 'rdma-rpc';
import { answer, end } from '../children.ts';
import { residentBytes } from '../cpu.ts';
import { BenchDefinition } from '../gen/bench.rdma.ts';
import { handlers } from '../handlers.ts';
import type { ManyTask } from './options.ts';
import { notReady } from './rnr.ts';

const address = '127.0.0.1:21077';
/** Number of calls in flight, over all sessions. */
const depth = 256;
/** The number of connections that are opened at the same time. */
const opening = 4;
const attempts = 10;
const sessionsMax = 16_384;
const KiB = 1024;
/**
 * Number of bytes that a session with default options registers for receives of its own: 256 + 16 slots, and
 * 4 for metadata.
 */
const ownBytes = 276 * (8192 + 64);
const payload = new Uint8Array(32);

async function serve(device: string): Promise<void> {
  const server = createServer({
    fabric: 'verbs',
    verbs: { device },
    sessionsMax,
    sessionsPerPeerMax: sessionsMax,
  }).add(BenchDefinition, handlers);
  await server.listen(address);
  process.on('message', () => {
    const { memoryBytes, protocolErrors } = stats('verbs');
    process.send!({ memoryBytes, protocolErrors, resident: residentBytes(process.pid) });
  });
  process.send!('ready');
}

/** On a slow machine, one of many attempts may come too late. */
async function reached(channel: Channel): Promise<void> {
  for (let again = attempts; again > 0; again--) {
    try {
      return await channel.ready();
    } catch (error) {
      if (again === 1) throw error;
    }
  }
}

interface Counted {
  memoryBytes: number;
  protocolErrors: number;
  resident: number;
}

async function measure({ sessions, calls, devices }: ManyTask): Promise<void> {
  const say = (text: string): void => void process.stderr.write(`${text}\n`);
  const counters = () => notReady('/sys/class/infiniband', { readFileSync, readdirSync });
  const server = fork(fileURLToPath(import.meta.url), ['server', devices.server]);
  try {
    await answer(server);
    const count = async (): Promise<Counted> => {
      server.send('count');
      return answer<Counted>(server);
    };
    const dial = (): Channel =>
      createChannel(address, {
        fabric: 'verbs',
        verbs: { device: devices.client },
        connectTimeoutMs: 60_000,
        timeoutMs: 120_000,
      });
    const channels: Channel[] = [];
    const open = async (): Promise<void> => {
      while (channels.length < sessions) {
        const channel = dial();
        channels.push(channel);
        await reached(channel);
        if (channels.length % 100 === 0) say(`${channels.length} sessions`);
      }
    };
    const before = counters();
    // The first session allocates the context's own memory.
    await reached(dial());
    const empty = await count();
    await Promise.all(Array.from({ length: opening }, open));
    const idle = await count();
    const clients = channels.map((channel) => createClient(BenchDefinition, channel));
    const started = performance.now();
    let made = 0;
    const work = async (): Promise<void> => {
      while (made < calls) {
        const at = made++;
        // Calls are made in bursts on a few sessions, and over all sessions in turn, so that grants are given
        // and revoked.
        const session = Math.floor(at / 5000) % 2 === 0 ? at % sessions : Math.floor(at / 1000) % sessions;
        await clients[session]!.echo({ payload, id: at });
        if (at % 20_000 === 0) say(`${at} calls`);
      }
    };
    await Promise.all(Array.from({ length: depth }, work));
    const seconds = (performance.now() - started) / 1000;
    const used = await count();
    const lost = channels.filter(({ state }) => state !== 'ready').length;
    const after = counters();
    const each = (used.memoryBytes - empty.memoryBytes) / sessions;
    console.log(
      JSON.stringify({
        sessions,
        calls: made,
        callsPerSecond: Math.round(made / seconds),
        notReady: after === undefined || before === undefined ? null : after - before,
        lost,
        registeredKiBEach: Math.round(each / KiB),
        shareOfOwn: Number((each / ownBytes).toFixed(3)),
        idleRssKiBEach: Math.round((idle.resident - empty.resident) / KiB / sessions),
        usedRssKiBEach: Math.round((used.resident - empty.resident) / KiB / sessions),
        protocolErrors: used.protocolErrors,
      }),
    );
    if (after === undefined)
      say('no driver here counts SENDs that find no receive: whether there were any is not known');
    const counted = after !== undefined;
    const good =
      counted && lost === 0 && after === before && each <= ownBytes / 4 && used.protocolErrors === 0;
    process.exitCode = good ? 0 : 1;
  } finally {
    await end(server);
  }
  process.exit();
}

const [role = '{}', device = ''] = process.argv.slice(2);
await (role === 'server' ? serve(device) : measure(JSON.parse(role) as ManyTask));
