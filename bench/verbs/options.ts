/** The command line of `npm run bench:verbs -- …`. */
import { InvalidArgumentError, program } from 'commander';
import { roundsOf } from '../options.ts';

export interface Options {
  /** Of the server and of the client; undefined: in a guest with two soft-RoCE devices. */
  device?: [string, string];
  gidIndex?: number;
  markdown?: string;
  rounds: number;
}

const guestDevices: [string, string] = ['rxe0', 'rxe1'];
/** That of the IPv4 address. */
const guestGidIndex = 1;
/** A real device does as many calls in the time that emulation takes for one. */
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

export function parseOptions(argv: readonly string[]): Options {
  program
    .name('npm run bench:verbs --')
    .description('Measures a session on RDMA devices beside perftest, in a guest with soft-RoCE or on a NIC.')
    .option('--device <a,b>', 'devices of this machine, of the server and of the client', devicesOf)
    .option('--gid-index <n>', 'of both, for perftest on Ethernet', gidIndexOf)
    .option('--markdown <file>', 'write the results into this file, and keep those of npm run bench there')
    .option('--rounds <n>', 'rounds', roundsOf, 5)
    .parse(argv as string[]);
  return program.opts<Options>();
}

/** Arguments of bench/verbs/rounds.ts behind the file. */
export function roundsArguments(options: Options): string[] {
  const [server, client] = options.device ?? guestDevices;
  const scale = options.device === undefined ? 1 : deviceScale;
  const gidIndex = options.device === undefined ? guestGidIndex : options.gidIndex;
  return [options.rounds, scale, server, client, ...(gidIndex === undefined ? [] : [gidIndex])].map(String);
}
