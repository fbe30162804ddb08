/** The command line of `npm run bench:verbs -- …`. */
import { InvalidArgumentError, program } from 'commander';
import { roundsOf } from '../options.ts';
import type { Devices } from './perftest.ts';

export interface Options {
  /**
   * The devices of the server and of the client. When undefined, a virtual machine with two soft-RoCE devices
   * is used.
   */
  device?: [string, string];
  gidIndex?: number;
  markdown?: string;
  /** Measures `rdma-rpc perf` beside perftest, instead of sessions. */
  perf?: true;
  /** Measures only this number of sessions on shared receives, and calls over them. */
  sessions?: number;
  calls: number;
  only: string[];
  rounds: number;
}

/** The argument of many.ts. */
export interface ManyTask {
  sessions: number;
  calls: number;
  devices: Pick<Devices, 'server' | 'client'>;
}

/** The argument of rounds.ts. */
export interface Task {
  measure: 'sessions' | 'perf';
  /** Beginnings of the names of the scenarios to run. When the list is empty, all scenarios are run. */
  only: readonly string[];
  rounds: number;
  scale: number;
  devices: Devices;
}

const guestDevices: [string, string] = ['rxe0', 'rxe1'];
/** The index of the IPv4 address in the guest's GID table. */
const guestGidIndex = 1;
/** A real device makes this number of times as many calls in the same time as an emulated one. */
const deviceScale = 20;

function gidIndexOf(text: string): number {
  const index = Number(text);
  if (!Number.isInteger(index) || index < 0 || index > 255) throw new InvalidArgumentError('0 to 255');
  return index;
}

function devicesOf(text: string): [string, string] {
  const [server, client = server, ...more] = text.split(',');
  if (!server || !client || more.length > 0)
    throw new InvalidArgumentError('one or two names: mlx5_0,mlx5_1');
  return [server, client];
}

function countOf(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1) throw new InvalidArgumentError('a number from 1 on');
  return count;
}

export function parseOptions(argv: readonly string[]): Options {
  program
    .name('npm run bench:verbs --')
    .description('Measures sessions on RDMA devices beside perftest, in a guest with soft-RoCE or on a NIC.')
    .option('--device <a,b>', 'devices of this machine, of the server and of the client', devicesOf)
    .option('--gid-index <n>', 'of both, for perftest on Ethernet', gidIndexOf)
    .option(
      '--markdown <file>',
      'write the results to this file (bench/verbs/RESULTS.md, with --perf bench/verbs/PERF.md)',
    )
    .option('--perf', '`rdma-rpc perf` beside perftest, line by line, instead of sessions')
    .option('--sessions <n>', 'instead: the cost of this number of sessions on shared receives', countOf)
    .option('--calls <n>', 'with --sessions: calls over all of them', countOf, 100_000)
    .option('--only <names...>', 'only scenarios whose name begins with one of these', [])
    .option('--rounds <n>', 'rounds', roundsOf, 5)
    .parse(argv as string[]);
  return program.opts<Options>();
}

export function manyTaskOf({ device, calls }: Options, sessions: number): ManyTask {
  const [server, client] = device ?? guestDevices;
  return { sessions, calls, devices: { server, client } };
}

export function taskOf({ device, gidIndex, perf, only, rounds }: Options): Task {
  const [server, client] = device ?? guestDevices;
  return {
    measure: perf === true ? 'perf' : 'sessions',
    only,
    rounds,
    scale: device === undefined ? 1 : deviceScale,
    devices: { server, client, gidIndex: device === undefined ? guestGidIndex : gidIndex },
  };
}
