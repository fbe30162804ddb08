/**
 * Runs traffic of every kind for minutes between a server process and a client process, while further clients
 * connect and leave. Between the rounds, the soak samples the resources of both processes, which must stay
 * flat. npm run test:soak uses it, and so does the suite of RDMA devices.
 */
import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChannelOptions } from 'rdma-rpc';
import { compiled, exited, nextMessage, oneCopy, ServerProcess } from '../runtime/process/processes.ts';
import type { Sample } from './sample.ts';
import type { Order, Told } from './traffic.ts';

export interface Soak {
  readonly ms: number;
  readonly roundMs: number;
  readonly channel?: ChannelOptions;
  /** The program with which the server process is started. */
  readonly server?: ForkOptions;
  readonly address?: string;
  /** A function that is called with the figures of each round. */
  readonly log?: (line: string) => void;
}

interface Course {
  readonly who: string;
  readonly samples: Sample[];
}

/**
 * Amount by which a value may grow from the second quarter of the soak to the last; less than this is noise
 * of the heap.
 */
const allowed: Readonly<Record<string, number>> = {
  heapUsed: 2 << 20,
  external: 4 << 20,
  arrayBuffers: 4 << 20,
  rss: 24 << 20,
  maps: 24,
};
const roundsMin = 8;

const mean = (numbers: readonly number[]): number =>
  numbers.reduce((sum, each) => sum + each, 0) / numbers.length;

/** Returns the values that are not flat. */
export function faultsOf({ who, samples }: Course): string[] {
  const faults: string[] = [];
  const quarter = Math.floor(samples.length / 4);
  const early = samples.slice(quarter, 2 * quarter);
  const late = samples.slice(-quarter);
  for (const name of Object.keys(samples[0]?.exact ?? {})) {
    const most = Math.max(...early.map(({ exact }) => exact[name] ?? 0));
    const last = late.map(({ exact }) => exact[name] ?? 0);
    if (Math.min(...last) > most) faults.push(`${who}: ${name} has grown from ${most} to ${last.join(', ')}`);
  }
  for (const [name, room] of Object.entries(allowed)) {
    const before = mean(early.map(({ wavering }) => wavering[name] ?? 0));
    const after = mean(late.map(({ wavering }) => wavering[name] ?? 0));
    if (after > before + room)
      faults.push(`${who}: ${name} has grown from ${Math.round(before)} to ${Math.round(after)}`);
  }
  const last = samples.at(-1)?.exact ?? {};
  for (const name of Object.keys(last)) {
    const rests = ['fds', 'sessions', 'queuePairs'].includes(name);
    if (!rests && last[name] !== 0) faults.push(`${who}: at the end ${name} is ${last[name]}`);
  }
  return faults;
}

async function order(client: ChildProcess, what: Order): Promise<Told> {
  const answer = nextMessage<Told>(client);
  client.send(what);
  return answer;
}

/** Runs client processes that make calls and leave, each in another way. */
async function comeAndGo(address: string, channel: string): Promise<void> {
  for (const end of ['close', 'exit', 'killed']) {
    await exited(fork(compiled('traffic', 'soak'), [address, channel, end], { execArgv: oneCopy }));
  }
}

const shown = ({ exact, wavering }: Sample): string => {
  const MiB = (name: string): string => `${name} ${((wavering[name] ?? 0) / 2 ** 20).toFixed(1)}`;
  return `${MiB('heapUsed')} ${MiB('arrayBuffers')} ${MiB('rss')} MiB, of it arena ${MiB('arenaBytes')}, maps ${wavering.maps}, fds ${exact.fds}, leases ${exact.arenaLeasedBlocks}, registered ${exact.mrBytes}`;
};

/** Resolves to the faults; an empty list means that everything stayed flat. */
export async function soak({
  ms,
  roundMs,
  channel = {},
  log = () => undefined,
  ...how
}: Soak): Promise<string[]> {
  const execArgv = ['--expose-gc'];
  const server = await ServerProcess.start(how.address, { mrCacheIdleMs: 200 }, { ...how.server, execArgv });
  const options = JSON.stringify(channel);
  const client = fork(compiled('traffic', 'soak'), [server.address, options, 'last'], {
    execArgv: [...execArgv, ...oneCopy],
  });
  const courses: Course[] = [
    { who: 'client', samples: [] },
    { who: 'server', samples: [] },
  ];
  let told: Told = {};
  try {
    await nextMessage(client);
    for (
      const end = performance.now() + ms;
      performance.now() < end || courses[0]!.samples.length < roundsMin;
    ) {
      const visitors = comeAndGo(server.address, options);
      told = await order(client, { trafficMs: roundMs });
      await visitors;
      // The server samples last, so that sessions of killed processes are gone.
      const { sample } = await order(client, { trafficMs: 0 });
      courses[0]!.samples.push(sample!);
      courses[1]!.samples.push(await server.sample());
      log(`${told.calls} calls\n  client ${shown(sample!)}\n  server ${shown(courses[1]!.samples.at(-1)!)}`);
      await sleep(0);
    }
  } finally {
    client.kill('SIGKILL');
    await server.kill();
  }
  return [...(told.wrong ?? []), ...courses.flatMap(faultsOf)];
}
