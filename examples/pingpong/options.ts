/**
 * The command line of the ping-pongs, with the flags of `ibv_rc_pingpong` where it has them.
 */
import { parseArgs } from 'node:util';

export const kinds = ['rc', 'uc', 'ud', 'srq', 'xsrq', 'multicast'] as const;
export type Kind = (typeof kinds)[number];

export interface Options {
  readonly kind: Kind;
  /** `sim` (one process only), `shm`, `tcp`, or an RDMA device. */
  readonly device: string;
  /** Number of bytes of each message. */
  readonly size: number;
  /** Number of rounds of each queue pair. */
  readonly iters: number;
  /** Number of queue pairs, which is 1 except for `srq`. */
  readonly queuePairs: number;
  /** Whether to sleep until completions arrive instead of polling. */
  readonly events: boolean;
  /** Whether messages are filled and each received byte is checked. The programs in C do neither. */
  readonly check: boolean;
  /** The index in the GID table of an RDMA device. */
  readonly gidIndex: number | undefined;
  /** The chance that a packet of UC or UD is lost, in millionths, and the seed of the world, both for sim. */
  readonly lossPpm: number;
  readonly seed: number;
  /** Whether both ends are in this process. */
  readonly both: boolean;
  readonly port: number;
  /** The host of the listening side. It is undefined when this side listens. */
  readonly host: string | undefined;
}

export const usage = `usage: main.js [${kinds.join('|')}] [flags] [HOST]

Without HOST this side listens, and with HOST it connects. On sim both ends are in this process.
  -d, --device NAME    sim (default), shm, tcp, or an RDMA device
  -s, --size BYTES     default 4096; at most one packet for ud and multicast
  -n, --iters N        rounds of each queue pair, default 1000
  -q, --qp N           srq: queue pairs that share their receives, default 16
  -e, --events         sleep for completions instead of polling
      --unchecked      fill and check no messages, as the programs in C
  -g, --gid-idx N      RDMA devices: index in the GID table
  -p, --port N         port of the listening side, default 18515
      --both           both ends in this process, on any device
      --loss PPM       sim: packets of uc and ud that are lost, in a million
      --seed N         sim: which ones`;

const flags = {
  device: { type: 'string', short: 'd', default: 'sim' },
  size: { type: 'string', short: 's', default: '4096' },
  iters: { type: 'string', short: 'n', default: '1000' },
  qp: { type: 'string', short: 'q', default: '16' },
  events: { type: 'boolean', short: 'e', default: false },
  unchecked: { type: 'boolean', default: false },
  'gid-idx': { type: 'string', short: 'g' },
  port: { type: 'string', short: 'p', default: '18515' },
  both: { type: 'boolean', default: false },
  loss: { type: 'string', default: '0' },
  seed: { type: 'string', default: '1' },
} as const;

function whole(flag: string, text: string, min: number, max: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new Error(`--${flag} ${text}: give a whole number from ${min} to ${max}`);
}

/** Throws an Error with a sentence for the user. */
export function optionsOf(args: readonly string[]): Options {
  const { values, positionals } = parseArgs({ args: [...args], options: flags, allowPositionals: true });
  const [name = 'rc', host, ...rest] = positionals;
  const kind = kinds.find((each) => each === name);
  if (kind === undefined) throw new Error(`'${name}' is none of ${kinds.join(', ')}`);
  if (rest.length > 0) throw new Error(`'${rest[0]}' is too much: one HOST is enough`);
  if (host !== undefined && values.device === 'sim')
    throw new Error('the devices of sim are in one process: leave out HOST, or give --device shm');
  return {
    kind,
    device: values.device,
    size: whole('size', values.size, 1, 1 << 24),
    iters: whole('iters', values.iters, 1, 1e9),
    queuePairs: kind === 'srq' ? whole('qp', values.qp, 1, 1024) : 1,
    events: values.events,
    check: !values.unchecked,
    gidIndex: values['gid-idx'] === undefined ? undefined : whole('gid-idx', values['gid-idx'], 0, 255),
    lossPpm: whole('loss', values.loss, 0, 1_000_000),
    seed: whole('seed', values.seed, 0, Number.MAX_SAFE_INTEGER),
    both: values.both || values.device === 'sim',
    port: whole('port', values.port, 0, 65_535),
    host,
  };
}
