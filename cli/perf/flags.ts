/**
 * The flags of `rdma-rpc perf`, named as in perftest where it has them, and the plan that results from them.
 */
import { type Command, InvalidArgumentError, Option } from '#commander';
import {
  atomics,
  type Connection,
  connections,
  depthDefault,
  fabricNames,
  inlineDefault,
  iterationsDefault,
  limits,
  type PerfFabric,
  type Plan,
  receiveDepthDefault,
  sizeDefault,
  type TestName,
} from './plan.ts';

export interface PerfFlags {
  readonly size?: number;
  readonly all?: true;
  readonly iters?: number;
  readonly duration?: number;
  readonly txDepth?: number;
  readonly rxDepth?: number;
  readonly qp: number;
  readonly inlineSize?: number;
  readonly cqMod?: number;
  readonly postList: number;
  readonly bidirectional?: true;
  readonly events?: true;
  readonly validate?: true;
  readonly connection: Connection;
  readonly useSrq?: true;
  readonly rdma_cm?: true;
  readonly mcast?: true;
  readonly atomicType: Plan['atomic'];
  readonly fabric?: PerfFabric;
  readonly device?: string;
  readonly gidIndex?: number;
  readonly port: number;
  readonly listen: string;
  readonly peers: number;
  readonly reportGbits?: true;
  readonly timeout: number;
  readonly json?: true;
}

const whole =
  ({ min, max }: { readonly min: number; readonly max: number }, what: string) =>
  (text: string): number => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Give ${what} from ${min} to ${max}.`);
  };

/** The largest exponent of perftest's flag -a, which tests 2, 4, 8 ... bytes. */
const largestPower = 23;
const portDefault = 18_515;

export function withPerfFlags(command: Command): Command {
  return command
    .option(
      '-s, --size <bytes>',
      'size of each message (default: 65536; 2 in latency tests, 8 in atomic tests)',
      whole(limits.bytes, 'bytes'),
    )
    .option('-a, --all', `sizes from 2 to 2^${largestPower} bytes, one after another`)
    .option(
      '-n, --iters <n>',
      'messages on each queue pair (default: 5000 in write_bw, else 1000)',
      whole(limits.iterations, 'messages'),
    )
    .option(
      '-D, --duration <s>',
      'seconds for each size, instead of --iters',
      whole({ min: 1, max: 86_400 }, 'seconds'),
    )
    .option(
      '-t, --tx-depth <n>',
      'requests in flight on a queue pair (default: 1 in latency tests, else 128)',
      whole(limits.depth, 'requests'),
    )
    .option(
      '-r, --rx-depth <n>',
      'receives posted on a queue pair (default: 512 in tests of SEND, else 1)',
      whole(limits.receiveDepth, 'receives'),
    )
    .option('-q, --qp <n>', 'queue pairs, in bandwidth tests', whole(limits.queuePairs, 'queue pairs'), 1)
    .option(
      '-I, --inline-size <bytes>',
      'longest message that is sent inline (default: 236 in send_lat and write_lat, else 0)',
      whole(limits.inlineMax, 'bytes'),
    )
    .option(
      '-Q, --cq-mod <n>',
      'number of requests that share one completion',
      whole({ min: 1, max: limits.signalEvery.max }, 'requests'),
    )
    .option(
      '-l, --post-list <n>',
      'number of requests that are posted at once, with one doorbell',
      whole(limits.postList, 'requests'),
      1,
    )
    .option('-b, --bidirectional', 'both sides send at the same time')
    .option('-e, --events', 'wait for completion events instead of polling')
    .option('--validate', 'check the bytes of each message')
    .addOption(
      new Option('-c, --connection <type>', 'type of the queue pairs')
        .choices([...connections])
        .default('RC'),
    )
    .option('--use-srq', 'the queue pairs of each side share their receives')
    .option('-R, --rdma_cm', 'connect the queue pairs by rdma_cm')
    .option('--mcast', 'UD: send to a multicast group that both sides join')
    .addOption(
      new Option('-A, --atomic-type <name>', 'operation of the atomic tests')
        .choices([...atomics])
        .default('fetch_add'),
    )
    .addOption(
      new Option(
        '--fabric <name>',
        'fabric to measure; bare is the device through libibverbs alone; default: chosen automatically',
      ).choices([...fabricNames]),
    )
    .option('-d, --device <name>', 'RDMA device of this side')
    .option(
      '-x, --gid-index <n>',
      'GID index of the port of that device',
      whole({ min: 0, max: 65_535 }, 'an index'),
    )
    .option(
      '-p, --port <n>',
      'port of the control connection',
      whole({ min: 0, max: 65_535 }, 'a port'),
      portDefault,
    )
    .option('--listen <address>', 'listening side: address to listen on', '0.0.0.0')
    .option(
      '--peers <n>',
      'listening side: number of peers that begin at once',
      whole({ min: 1, max: 256 }, 'peers'),
      1,
    )
    .option('--report-gbits', 'report Gb/sec instead of MB/sec (2^20 bytes)')
    .option(
      '--timeout <ms>',
      'time limit for finding the other side',
      whole({ min: 1, max: 600_000 }, 'milliseconds'),
      10_000,
    )
    .option('--json', 'print JSON for programs; docs/schemas describes it');
}

function sizesOf(test: TestName, { all, size }: PerfFlags): number[] {
  if (all === true) return Array.from({ length: largestPower }, (_, i) => 2 ** (i + 1));
  return [size ?? sizeDefault(test)];
}

export function planOf(test: TestName, flags: PerfFlags): Plan {
  return {
    test,
    connection: flags.connection,
    atomic: flags.atomicType,
    sizes: sizesOf(test, flags),
    iterations: flags.iters ?? iterationsDefault(test),
    durationMs: (flags.duration ?? 0) * 1000,
    depth: flags.txDepth ?? depthDefault(test),
    receiveDepth: flags.rxDepth ?? receiveDepthDefault(test),
    queuePairs: flags.qp,
    inlineMax: flags.inlineSize ?? inlineDefault(test),
    signalEvery: flags.cqMod ?? 0,
    postList: flags.postList,
    bidirectional: flags.bidirectional === true,
    validate: flags.validate === true,
    events: flags.events === true,
    sharedReceives: flags.useSrq === true,
    manager: flags.rdma_cm === true,
    multicast: flags.mcast === true,
    // The bytes of two runs must differ.
    seed: Math.floor(Math.random() * 2 ** 32),
  };
}

/** The part of a plan that each flag sets. */
const decides: Readonly<Record<string, keyof Plan>> = {
  size: 'sizes',
  all: 'sizes',
  iters: 'iterations',
  duration: 'durationMs',
  txDepth: 'depth',
  rxDepth: 'receiveDepth',
  qp: 'queuePairs',
  inlineSize: 'inlineMax',
  cqMod: 'signalEvery',
  postList: 'postList',
  bidirectional: 'bidirectional',
  validate: 'validate',
  connection: 'connection',
  useSrq: 'sharedReceives',
  rdma_cm: 'manager',
  mcast: 'multicast',
  atomicType: 'atomic',
};

/**
 * Returns the settings that the user has given, without defaults. On the listening side, the other side
 * determines the other options.
 */
export function givenOf(command: Command, plan: Plan): Partial<Plan> {
  const said = Object.keys(decides).filter((flag) => command.getOptionValueSource(flag) === 'cli');
  return Object.fromEntries(said.map((flag) => [decides[flag]!, plan[decides[flag]!]]));
}
