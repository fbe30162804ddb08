/**
 * Measures the ping-pongs of `rdma-rpc/verbs` (examples/pingpong) beside `ibv_rc_pingpong`,
 * `ibv_uc_pingpong`, `ibv_ud_pingpong` and `ibv_srq_pingpong` of rdma-core, and beside `ib_send_lat` of
 * perftest, between two devices of this machine. All of them poll. It prints a table with medians. The
 * programs run in turn.
 *
 *   node dist/bench/verbs/ping-pongs.js DEVICE DEVICE [GID_INDEX]       in a guest: rxe0 rxe1 1
 */
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { perftest } from './perftest.ts';
import { start } from './program.ts';

const [serverDevice, clientDevice, gidIndex] = process.argv.slice(2);
if (serverDevice === undefined || clientDevice === undefined) {
  console.error('usage: ping-pongs.js DEVICE DEVICE [GID_INDEX]');
  process.exit(2);
}
const example = fileURLToPath(new URL('../../examples/pingpong/main.js', import.meta.url));
const host = '127.0.0.1';
const bytes = 64;
/** Most of them run compiled. In an emulated guest V8 compiles the loop within the first ten thousand. */
const rounds = 40_000;
/** Number of queue pairs of `srq`, as by default in the C program. Each has a message under way. */
const queuePairs = 16;
const measurements = 3;
/**
 * Two polling processes and the kernel's network share the processors of a small guest. On a busy host a
 * round can then take milliseconds.
 */
const limitMs = 240_000;
/**
 * Interval in milliseconds between attempts to connect, and the maximum number of attempts. A guest starts
 * Node in seconds.
 */
const retryMs = 200;
const retriesMax = 100;
const notListening = /couldn't connect|connection refused|ECONNREFUSED/i;

let port = 21_000;

/**
 * Runs both ends, with `iters` as the number that the program takes for all rounds. Returns the mean round
 * trip in microseconds, because the programs print nothing else.
 */
async function usEach(program: readonly string[], iters: number): Promise<number> {
  const gid = gidIndex === undefined ? [] : ['-g', gidIndex];
  const common = [...program, '-p', String(++port), '-s', String(bytes), '-n', String(iters), ...gid];
  const server = start([...common, '-d', serverDevice!], limitMs);
  for (let i = 0; i < retriesMax; ++i) {
    const client = await start([...common, '-d', clientDevice!, host], limitMs).ended;
    const found = /= ([\d.]+) usec\/iter/.exec(client.output);
    if (found !== null) {
      await server.ended;
      return Number(found[1]);
    }
    if (!notListening.test(client.output)) {
      // The server may still say why it ended the connection.
      const limit = setTimeout(() => server.child.kill('SIGKILL'), 5000);
      await server.ended;
      clearTimeout(limit);
      throw new Error(`${common.join(' ')}: ${client.output}${(await server.ended).output}`);
    }
    await delay(retryMs);
  }
  server.child.kill('SIGKILL');
  throw new Error(`${program.join(' ')} does not listen`);
}

/**
 * Returns the typical round trip of `ib_send_lat` in microseconds, which is twice the figure that the program
 * prints, or undefined for `srq`, because its round trips have several messages under way.
 */
async function usOfSendLat(kind: string): Promise<number | undefined> {
  if (kind === 'srq') return undefined;
  const gid = gidIndex === undefined ? undefined : Number(gidIndex);
  const devices = { server: serverDevice!, client: clientDevice!, gidIndex: gid };
  const flags = ['-c', kind.toUpperCase(), '-I', String(bytes)];
  // The columns are bytes, iterations, least, most and typical.
  return 2 * (await perftest('ib_send_lat', devices, bytes, rounds, flags))[4]!;
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

const range = (values: readonly number[]): string =>
  `${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)}`;

console.log(
  `| ${bytes} bytes, polling | C program | ib_send_lat | rdma-rpc/verbs | / C | ratios | / ib_send_lat | ratios |`,
);
console.log('|---|---:|---:|---:|---:|---:|---:|---:|');
for (const kind of ['rc', 'uc', 'ud', 'srq']) {
  // The example counts the rounds of each queue pair, and the C program those of all together.
  const [flags, itersOfExample] =
    kind === 'srq' ? [['-q', String(queuePairs)], rounds / queuePairs] : [[], rounds];
  const all: { c: number; sendLat: number | undefined; ours: number }[] = [];
  for (let i = 0; i < measurements; ++i) {
    all.push({
      c: await usEach([`ibv_${kind}_pingpong`, ...flags], rounds),
      sendLat: await usOfSendLat(kind),
      ours: await usEach([process.execPath, example, kind, '--unchecked', ...flags], itersOfExample),
    });
  }
  const ofC = all.map(({ c, ours }) => ours / c);
  const ofSendLat = all.flatMap(({ sendLat, ours }) => (sendLat === undefined ? [] : [ours / sendLat]));
  const us = (values: readonly number[]) => `${median(values).toFixed(1)} us`;
  const cells = [kind, us(all.map(({ c }) => c))];
  cells.push(ofSendLat.length === 0 ? '-' : us(all.map(({ sendLat }) => sendLat!)));
  cells.push(us(all.map(({ ours }) => ours)), `${median(ofC).toFixed(2)} ×`, range(ofC));
  cells.push(
    ...(ofSendLat.length === 0 ? ['-', '-'] : [`${median(ofSendLat).toFixed(2)} ×`, range(ofSendLat)]),
  );
  console.log(`| ${cells.join(' | ')} |`);
}
