/**
 * Debian's perftest and ibv_rc_pingpong between two devices of this machine. It starts both ends and reads
 * the relevant figure. It runs on the machine that has the devices.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type Ended, start } from './program.ts';

export interface Devices {
  server: string;
  client: string;
  /** The GID index of both ports. It is undefined on InfiniBand, which needs none. */
  gidIndex: number | undefined;
}

const host = '127.0.0.1';
/**
 * Interval in milliseconds between attempts to connect, because the server has no way to report that it
 * listens.
 */
const connectRetryMs = 50;
const connectRetries = 200;
const notListening = /couldn't connect|connection refused|unable to connect/i;

/** Each run has a separate port, because the last run's port may still be in use. */
let port = 20_000;

async function bothEnds(server: readonly string[], client: readonly string[]): Promise<string> {
  const listening = start(server);
  let ended: Ended | undefined;
  for (let i = 0; i < connectRetries; i++) {
    ended = await start(client).ended;
    if (!notListening.test(ended.output) || listening.child.exitCode !== null) break;
    await delay(connectRetryMs);
  }
  if (ended?.code === 0) {
    await listening.ended;
    return ended.output;
  }
  listening.child.kill('SIGKILL');
  const said = `${ended?.output ?? ''}${(await listening.ended).output}`.trim();
  throw new Error(`${client.join(' ')}: ${said.split('\n').slice(-3).join(' ')}`);
}

/** Returns the last line of figures, which begins with the number of bytes. */
function figures(output: string, bytes: number): number[] {
  const line = output.split('\n').findLast((each) => new RegExp(`^\\s*${bytes}\\s+\\d`).test(each));
  if (line === undefined) throw new Error(`perftest printed no figures: ${output.slice(-300)}`);
  return line.trim().split(/\s+/).map(Number);
}

/** Returns the figures of the columns that the program prints. */
export async function perftest(
  program: string,
  devices: Devices,
  bytes: number,
  count: number,
  more: readonly string[],
): Promise<number[]> {
  port++;
  const gid = devices.gidIndex === undefined ? [] : ['-x', String(devices.gidIndex)];
  const common = [
    program,
    '-F',
    '-p',
    String(port),
    '-s',
    String(bytes),
    '-n',
    String(count),
    ...gid,
    ...more,
  ];
  const output = await bothEnds([...common, '-d', devices.server], [...common, '-d', devices.client, host]);
  return figures(output, bytes);
}

/** Returns half a round trip in microseconds, as the median. */
export async function sendLatency(devices: Devices, bytes: number, count: number, events: boolean) {
  const more = ['-I', String(bytes), ...(events ? ['-e'] : [])];
  // The columns are bytes, iterations, least, most and typical.
  return (await perftest('ib_send_lat', devices, bytes, count, more))[4]!;
}

/** Returns the bandwidth in MiB/s. */
export async function bandwidth(
  program: 'ib_read_bw' | 'ib_write_bw',
  devices: Devices,
  bytes: number,
  count: number,
  inFlight: number,
) {
  // The columns are bytes, iterations, peak and average.
  return (await perftest(program, devices, bytes, count, ['-t', String(inFlight)]))[3]!;
}

/** Returns half a round trip in microseconds, as the mean, because the tool prints nothing else. */
export async function rcPingpong(devices: Devices, bytes: number, count: number, events: boolean) {
  port++;
  const gid = devices.gidIndex === undefined ? [] : ['-g', String(devices.gidIndex)];
  const sizes = ['-s', String(bytes), '-n', String(count), ...(events ? ['-e'] : [])];
  const common = ['ibv_rc_pingpong', '-p', String(port), ...sizes, ...gid];
  const output = await bothEnds([...common, '-d', devices.server], [...common, '-d', devices.client, host]);
  const found = /= ([\d.]+) usec\/iter/.exec(output);
  if (found === null) throw new Error(`ibv_rc_pingpong printed no figures: ${output.slice(-300)}`);
  return Number(found[1]) / 2;
}
