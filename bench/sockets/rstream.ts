/**
 * Measures `rdma-rpc/socket` beside rsocket, by the traffic of `rstream`, between two RDMA devices of this
 * machine. It prints a table with medians. Each round runs all programs, one after the other.
 *
 *   node dist/bench/sockets/rstream.js [--smc] [--rstream FILE] DEVICE ADDRESS DEVICE ADDRESS
 *
 * The first device and IPv4 address are those of the server. FILE is the program, `rstream` by default
 * (Debian's rdmacm-utils). With `--smc` rstream also runs on sockets of AF_SMC (smc.ts). In a guest:
 * rxe0 10.77.0.1 rxe1 10.77.0.2
 */
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { start } from '../verbs/program.ts';
import type { Traffic } from './rstream-end.ts';
import { setUpSmc, smcQueuePairs } from './smc.ts';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { smc: { type: 'boolean', default: false }, rstream: { type: 'string', default: 'rstream' } },
});
const [serverDevice, serverAddress, clientDevice, clientAddress] = positionals;
if (serverDevice === undefined || clientDevice === undefined || clientAddress === undefined) {
  console.error('usage: rstream.js [--smc] [--rstream FILE] DEVICE ADDRESS DEVICE ADDRESS');
  process.exit(2);
}
const smc = options.smc ? setUpSmc([serverDevice, clientDevice]) : undefined;
const end = fileURLToPath(new URL('./rstream-end.js', import.meta.url));
const rounds = 3;
const limitMs = 60_000;
/** Interval in milliseconds between attempts to connect, and the maximum number of attempts. */
const retryMs = 200;
const retriesMax = 100;
const notListening = /refused|rconnect|ECONN|unavailable/i;

/**
 * rstream spins on the socket, or it blocks (`-T b`), where rsocket looks for completions for 10 us and then
 * sleeps.
 */
interface Scenario extends Omit<Traffic, 'polling'> {
  readonly name: string;
  readonly goal: string;
}
/**
 * With a shorter warm-up V8 has not compiled the code in a guest, and sockets take up to three times as
 * long.
 */
const scenarios: readonly Scenario[] = [
  { name: '64 B', goal: 'at most 1.2 × the time', bytes: 64, blocks: 1, iterations: 4000, warmUp: 30_000 },
  { name: '64 KiB', goal: 'at least 0.9 × the rate', bytes: 65_536, blocks: 64, iterations: 2, warmUp: 40 },
  { name: '1 MiB', goal: 'at least 0.9 × the rate', bytes: 1 << 20, blocks: 8, iterations: 2, warmUp: 20 },
];
const ways = [
  { name: 'spinning', flags: [], polling: 'busy' },
  { name: 'blocking', flags: ['-T', 'b'], polling: 'adaptive' },
] as const;

let port = 23_000;

/** Starts both ends, and returns the microseconds of each block. */
async function usEach(server: readonly string[], client: readonly string[], figure: RegExp): Promise<number> {
  const serving = start(server, limitMs);
  try {
    for (let i = 0; i < retriesMax; ++i) {
      await delay(retryMs);
      const { output } = await start(client, limitMs).ended;
      const found = figure.exec(output);
      if (found !== null) return Number(found[1]);
      if (!notListening.test(output)) throw new Error(`${client.join(' ')}: ${output}`);
    }
    throw new Error(`${server.join(' ')} does not listen`);
  } finally {
    serving.child.kill('SIGKILL');
    await serving.ended;
  }
}

/** `before` stands before the command of rstream. */
function theirs(
  { bytes, blocks, iterations }: Scenario,
  flags: readonly string[],
  before: readonly string[] = [],
): Promise<number> {
  const sizes = ['-S', bytes, '-C', blocks, '-I', iterations, '-p', ++port].map(String);
  const common = [...before, options.rstream, ...sizes, ...flags];
  // The last column is the time of each block in microseconds.
  return usEach(
    [...common, '-b', serverAddress!],
    [...common, '-s', serverAddress!, '-b', clientAddress!],
    /^custom\s.*\s([\d.]+)\s*$/m,
  );
}

function ours(scenario: Scenario, polling: Traffic['polling']): Promise<number> {
  const command = (role: string, device: string): string[] => [
    process.execPath,
    end,
    role,
    `${serverAddress}:${port}`,
    device,
    JSON.stringify({ ...scenario, polling }),
  ];
  ++port;
  return usEach(command('server', serverDevice!), command('client', clientDevice!), /^([\d.]+) us each$/m);
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
const fixed = (value: number): string => value.toFixed(value < 10 ? 2 : 1);

console.log(
  '| block | both ends | rstream | rdma-rpc/socket | ratio | ratios | goal | rstream on SMC | ratio |',
);
console.log('|---|---|---:|---:|---:|---:|---|---:|---:|');
for (const scenario of scenarios) {
  for (const { name, flags, polling } of ways) {
    const rows: { rsocket: number; smc: number; own: number }[] = [];
    for (let i = 0; i < rounds; ++i) {
      rows.push({
        rsocket: await theirs(scenario, flags),
        smc: smc === undefined ? Number.NaN : await theirs(scenario, [...flags, '-T', 's'], smc),
        own: await ours(scenario, polling),
      });
    }
    // A latency is compared as the time of a block, and a bandwidth as its rate.
    const latency = scenario.blocks === 1;
    const figure = (us: number): string =>
      latency ? `${fixed(us)} us` : `${fixed(scenario.bytes / us)} MB/s`;
    const ratiosTo = (peer: 'rsocket' | 'smc'): number[] =>
      rows.map((row) => (latency ? row.own / row[peer] : row[peer] / row.own));
    const ratios = ratiosTo('rsocket');
    const range = `${fixed(Math.min(...ratios))} to ${fixed(Math.max(...ratios))}`;
    const cells = [
      scenario.name,
      name,
      figure(median(rows.map(({ rsocket }) => rsocket))),
      figure(median(rows.map(({ own }) => own))),
      `${fixed(median(ratios))} ×`,
      range,
      scenario.goal,
      ...(smc === undefined
        ? ['-', '-']
        : [figure(median(rows.map((row) => row.smc))), `${fixed(median(ratiosTo('smc')))} ×`]),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
}
if (smc !== undefined && smcQueuePairs() === 0)
  console.log('The kernel made no queue pair for SMC, so the column of SMC is that of TCP.');
process.exit();
