/**
 * `rdma-rpc top`: shows what a running process does, from its counters page. Exit code 1 means that the
 * process does not exist or has ended, and 2 that the target is invalid.
 */
import { setTimeout } from 'node:timers/promises';
import { type Command, InvalidArgumentError } from '#commander';
import { type DeviceCounters, readDeviceCounters } from '../../runtime/counters/device-counters.ts';
import { type ProcessCounters, readCounters } from '../../runtime/counters/processes.ts';
import { jsonText } from '../output.ts';
import { sayError } from '../server/connection.ts';
import { screenOf } from './screen.ts';
import { pidOf } from './target.ts';
import { openTerminal, type Terminal } from './terminal.ts';
import { type View, viewOf } from './view.ts';

interface TopFlags {
  readonly interval: number;
  readonly once?: true;
  readonly json?: true;
}

/**
 * Returns the number of columns. Without a terminal, lines have their full length unless COLUMNS limits it.
 */
function columnsOf(): number {
  const { columns } = process.stdout;
  if (columns !== undefined) return columns;
  const given = Number(process.env.COLUMNS);
  return Number.isInteger(given) && given > 0 ? given : Number.POSITIVE_INFINITY;
}

function seconds(text: string): number {
  const value = Number(text);
  if (value >= 0.1 && value <= 3600) return value;
  throw new InvalidArgumentError('Give seconds from 0.1 to 3600.');
}

export function addTopCommand(program: Command): void {
  program
    .command('top')
    .description('watch a process that uses rdma-rpc: calls, latencies, bytes, credits, memory')
    .argument('[target]', 'PID, or an address served on this machine; default: the only process')
    .option('-i, --interval <seconds>', 'interval between readings', seconds, 1)
    .option('--once', 'print one table and exit; this is the default without a terminal')
    .option('--json', 'print a line of JSON for each reading, for programs; docs/schemas describes it')
    .action(async (target: string | undefined, flags: TopFlags) => {
      try {
        await top(pidOf(target), flags);
      } catch (error) {
        sayError(error, flags);
        process.exitCode = error instanceof TypeError ? 2 : 1;
      }
    });
}

/** Reads the counters of the devices that the process uses. */
const devicesOf = ({ contexts }: ProcessCounters): Promise<readonly DeviceCounters[]> =>
  readDeviceCounters([...new Set(contexts.map(({ device }) => device))]);

/** Yields readings, one for each interval, until `stop` is aborted. */
async function* views(pid: number, intervalMs: number, stop: AbortSignal): AsyncGenerator<View> {
  let before = readCounters(pid);
  let devicesBefore = await devicesOf(before);
  for (;;) {
    await setTimeout(intervalMs, undefined, { signal: stop }).catch(() => undefined);
    if (stop.aborted) return;
    const now = nextReading(before);
    const devices = await devicesOf(now);
    yield viewOf(now, before, { now: devices, before: devicesBefore });
    before = now;
    devicesBefore = devices;
  }
}

/** Another process may have got the same pid. Its start time then differs. */
export function nextReading(before: ProcessCounters, read = readCounters): ProcessCounters {
  const { pid, startTicks } = before;
  let now: ProcessCounters;
  try {
    now = read(pid);
  } catch (cause) {
    throw new Error(`process ${pid} has ended, or has closed its last connection`, { cause });
  }
  if (now.startTicks !== startTicks) throw new Error(`process ${pid} has ended`);
  return now;
}

async function top(pid: number, { interval, once, json }: TopFlags): Promise<void> {
  const stop = new AbortController();
  const live = once !== true && json !== true && process.stdout.isTTY === true;
  let terminal: Terminal | undefined;
  let shown: View | undefined;
  // The first screen has no rates or latencies, because they need two readings.
  let note = `rates and latencies in ${interval} s`;
  const show = (): void => {
    if (terminal !== undefined && shown !== undefined) terminal.show(screenOf(shown, terminal, note));
  };
  try {
    if (live) {
      const first = readCounters(pid);
      shown = viewOf(first, first);
      terminal = openTerminal(() => stop.abort(), show);
      show();
    } else if (json !== true && process.stderr.isTTY) {
      // A program that reads the output of this command does not watch it.
      console.error(`process ${pid} is read twice, since rates need two readings: ${note}`);
    }
    for await (const view of views(pid, interval * 1000, stop.signal)) {
      shown = view;
      note = '';
      if (live) show();
      else if (json === true) console.log(jsonText(view));
      else {
        const room = { columns: columnsOf(), rows: Number.POSITIVE_INFINITY };
        console.log(screenOf(view, room).join('\n'));
      }
      if (!live && (once === true || json !== true)) return;
    }
  } finally {
    terminal?.close();
  }
}
