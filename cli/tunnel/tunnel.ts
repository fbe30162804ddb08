/**
 * `rdma-rpc tunnel`: lets programs that use only TCP or unix sockets communicate over a session of this
 * package. One end runs beside the clients (`--listen`), the other beside the server (`--serve`). Runs until
 * SIGTERM or SIGINT.
 */
import type { Command } from '#commander';
import pc from '#picocolors';
import { printableLine } from '../output.ts';
import { withFlagsNamed } from '../server/tls-flags.ts';
import { newCounts } from './counts.ts';
import type { TunnelEnd } from './end.ts';
import { channelOf, checkFlags, serverOf, type TunnelFlags, withTunnelFlags } from './flags.ts';
import { Reports } from './reports.ts';

export function addTunnelCommand(program: Command): void {
  withTunnelFlags(
    program
      .command('tunnel')
      .description(
        'carry TCP or unix-socket connections of any program over one session: start one end with --serve beside the server program, and one with --listen beside its clients',
      ),
  ).action(run);
}

function fail(error: unknown, exitCode: number): void {
  console.error(pc.red(`error: ${printableLine(withFlagsNamed((error as Error).message))}`));
  process.exitCode = exitCode;
}

async function run(flags: TunnelFlags): Promise<void> {
  const counts = newCounts();
  const reports = new Reports((line) => console.error(line));
  const report = reports.add.bind(reports);
  let start: () => Promise<TunnelEnd>;
  try {
    checkFlags(flags);
    const { listeningEnd, servingEnd } = await import('./end.ts');
    const { listen, serve, to } = flags;
    if (listen !== undefined) {
      const channel = channelOf(flags);
      start = () => listeningEnd(listen, to, channel, counts, report);
    } else {
      const options = serverOf(flags);
      start = () => servingEnd(serve!, to, options, counts, report);
    }
  } catch (error) {
    fail(error, 2);
    return;
  }
  let end: TunnelEnd;
  try {
    end = await start();
    if (flags.metrics !== undefined) {
      const { serveMetrics } = await import('./metrics.ts');
      const { bound } = await serveMetrics(flags.metrics, counts);
      console.error(`metrics on http://${bound}/metrics`);
    }
  } catch (error) {
    fail(error, 1);
    process.exit();
  }
  // Signals are handled before the line is printed, because a program that waits for the line may send one.
  const over = drained(end, flags.grace, () => counts.open);
  console.error(`${flags.listen === undefined ? 'serving' : 'listening'} on ${end.bound}, to ${flags.to}`);
  await over;
  reports.flush();
  process.exit(0);
}

/** Time that the last messages have after connections were reset. */
const resetMs = 1000;

/**
 * Resolves when a signal has ended the tunnel. The first signal drains it, and the second signal ends it at
 * once.
 */
function drained(end: TunnelEnd, graceMs: number, open: () => number): Promise<void> {
  return new Promise((resolve) => {
    let draining = false;
    // A far end that is stopped must not keep this process alive. The resets leave before the time is over.
    const endNow = (): void => {
      end.destroy();
      setTimeout(resolve, resetMs);
    };
    const onSignal = (signal: NodeJS.Signals): void => {
      if (draining) {
        endNow();
        return;
      }
      draining = true;
      const late = setTimeout(endNow, graceMs);
      void end.drain().then(() => {
        clearTimeout(late);
        resolve();
      });
      // The line is printed last, because only then does the tunnel take no more connections.
      console.error(`${signal}: taking no more connections; ${open()} open`);
    };
    process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  });
}
