/**
 * `rdma-rpc perf`: measures a fabric or a device without RPC, as perftest does. The exit code is 0 when the
 * test was measured, 1 when it was not measured or data was damaged, and 2 for a wrong command line.
 */
import type { Command } from '#commander';
import { hostPort } from '../host-port.ts';
import { jsonText, printable } from '../output.ts';
import { sayError } from '../server/connection.ts';
import { PerfError } from './control.ts';
import { givenOf, type PerfFlags, planOf, withPerfFlags } from './flags.ts';
import { type TestName, testNames, whyNotPlan } from './plan.ts';

export function addPerfCommand(program: Command): void {
  withPerfFlags(
    program
      .command('perf')
      .description(
        'measure a fabric or a device without RPC, as perftest does: one side listens, the other connects',
      )
      .argument(
        '[test]',
        `${testNames.join(', ')}; left out: listen, and run the test that the other side asks for`,
      )
      .argument('[address]', 'host or host:port of the listening side; left out: this side listens'),
  ).action(
    async (test: string | undefined, address: string | undefined, flags: PerfFlags, command: Command) => {
      try {
        process.exitCode = await perf(test, address, flags, command);
      } catch (error) {
        if (!(error instanceof PerfError || error instanceof UsageError)) throw error;
        sayError(error, flags);
        process.exitCode = error instanceof UsageError ? 2 : 1;
      }
    },
  );
}

class UsageError extends Error {}

function testOf(name: string): TestName {
  const found = testNames.find((each) => each === name.replace(/^ib_/, ''));
  if (found !== undefined) return found;
  throw new UsageError(`unknown test '${name}': give one of ${testNames.join(', ')}, then the address`);
}

function addressOf(text: string, port: number): { host: string; port: number } {
  const found = hostPort(text, port);
  if (found !== undefined) return found;
  throw new UsageError(`'${text}' is not an address: give host, host:port or [IPv6]:port`);
}

async function perf(
  name: string | undefined,
  address: string | undefined,
  flags: PerfFlags,
  command: Command,
): Promise<number> {
  const test = name === undefined ? undefined : testOf(name);
  const plan = planOf(test ?? 'send_lat', flags);
  const why = test === undefined ? undefined : whyNotPlan(plan, flags.fabric);
  if (why !== undefined) throw new UsageError(why);
  // The modules are loaded here, so that other commands need no addon.
  const [{ listen }, { dial }, { testedText, validationText }, { loadNative }] = await Promise.all([
    import('./listen.ts'),
    import('./dial.ts'),
    import('./table.ts'),
    import('../../runtime/native/native.ts'),
  ]);
  try {
    loadNative();
  } catch (cause) {
    throw new PerfError((cause as Error).message.replace(/^rdma-rpc: /, ''), { cause });
  }
  const { json, timeout: timeoutMs, fabric, device, gidIndex } = flags;
  const own = {
    ...(fabric === undefined ? {} : { fabric }),
    ...(device === undefined ? {} : { device }),
    ...(gidIndex === undefined ? {} : { gidIndex }),
  };
  const say = (text: string): void => console.error(printable(text));
  const tested =
    address === undefined
      ? await listen({
          ...own,
          host: flags.listen,
          port: flags.port,
          peers: flags.peers,
          events: flags.events === true,
          ...(test === undefined ? {} : { test }),
          given: givenOf(command, plan),
          say,
        })
      : await dial(plan, { ...own, ...addressOf(address, flags.port), timeoutMs, say });
  console.log(
    json === true ? jsonText(tested, 2) : printable(testedText(tested, flags.reportGbits === true)),
  );
  if (tested.corrupt === 0) return 0;
  sayError(new PerfError(validationText(tested)), {});
  return 1;
}
