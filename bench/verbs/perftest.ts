/**
 * Debian's perftest and ibv_rc_pingpong between two devices of this machine: starts both ends and reads the
 * relevant figure. Runs where the devices are.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type Ended, start } from './program.ts';

export interface Devices {
  server: string;
  client: string;
  /** The GID index of both ports; undefined on InfiniBand, where none is needed. */
  gidIndex: number | undefined;
}

const host = '127.0.0.1';
/** The server has no way to report that it listens. */
const connectRetryMs = 50;
const connectRetries = 200;
const notListening = /couldn't connect|connection refused|unable to connect/i;

/** A separate port for each run: the last one's may still be in use. */
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

/** The last line of figures, which begins with the number of bytes. */
function figures(output: string, bytes: number): number[] {
  const line = output.split('\n').findLast((each) => new RegExp(`^\\s*${bytes}\\s+\\d`).test(each));
  if (line === undefined) throw new Error(`perftest printed no figures: ${output.slice(-300)}`);
  return line.trim().split(/\s+/).map(Number);
}

/** The figures of the columns that it prints. */
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

/** Half a round trip in microseconds, the median. */
export async function sendLatency(devices: Devices, bytes: number, count: number, events: boolean) {
  const more = ['-I', String(bytes), ...(events ? ['-e'] : [])];
  // bytes, iterations, least, most, typical
  return (await perftest('ib_send_lat', devices, bytes, count, more))[4]!;
}

/** In MiB/s. */
export async function bandwidth(
  program: 'ib_read_bw' | 'ib_write_bw',
  devices: Devices,
  bytes: number,
  count: number,
  inFlight: number,
) {
  // bytes, iterations, peak, average
  return (await perftest(program, devices, bytes, count, ['-t', String(inFlight)]))[3]!;
}

/** Half a round trip in microseconds, the mean, which is all that the tool prints. */
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
