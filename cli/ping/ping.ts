/**
 * `rdma-rpc ping`: reaches a server step by step, and measures each step and some round trips, as rping,
 * cmtime and ibping do for devices. Exit code 0 means that the server has answered, 1 that it has not, and 2
 * that the command line is wrong.
 */
import type { Command } from '#commander';
import pc from '#picocolors';
import { type Address, formatAddress, parseAddress } from '../../runtime/control/socket/address.ts';
import { hostPort } from '../host-port.ts';
import { jsonText, printableLine } from '../output.ts';
import { sayError } from '../server/connection.ts';
import { type PingFlags, withPingFlags } from './flags.ts';
import type { Stopped } from './reach.ts';

/** The port of the quick start, which gRPC servers also use. */
const portDefault = 50_051;

export function addPingCommand(program: Command): void {
  withPingFlags(
    program
      .command('ping')
      .description('reach a server step by step, with the time of each step, and make round trips')
      .argument('<address>', `host, host:port or unix:/path; default of the port: ${portDefault}`),
  ).action(async (address: string, flags: PingFlags) => {
    process.exitCode = await ping(address, flags);
  });
}

/** Throws a TypeError for anything else. */
function addressOf(text: string): Address {
  const found = text.startsWith('unix:') ? undefined : hostPort(text, portDefault);
  return found === undefined ? parseAddress(text) : { kind: 'tcp', ...found };
}

/** Prints where the command has stopped, and what the user can do. */
function sayStopped({ step, message, next }: Pick<Stopped, 'step' | 'message' | 'next'>): void {
  console.error(pc.red(`error: stopped at ${step}: ${printableLine(message)}`));
  console.error(`  → ${next}`);
}

async function ping(text: string, flags: PingFlags): Promise<number> {
  // The modules are loaded here, so that other commands need no addon.
  const [{ targetFor }, { openMany, manyText }, { pingOnce }, { loadNative }] = await Promise.all([
    import('./target.ts'),
    import('./many.ts'),
    import('./once.ts'),
    import('../../runtime/native/native.ts'),
  ]);
  let address: Address;
  try {
    address = addressOf(text);
    loadNative();
  } catch (error) {
    sayError(error, flags);
    return error instanceof TypeError ? 2 : 1;
  }
  let target: ReturnType<typeof targetFor>;
  try {
    target = targetFor(address, flags);
  } catch (error) {
    sayError(error, flags);
    return 2;
  }
  const interrupted = new AbortController();
  const interrupt = (): void => interrupted.abort();
  process.once('SIGINT', interrupt);
  try {
    const { json, connections } = flags;
    const name = formatAddress(address);
    const say = json === true ? (): void => undefined : (line: string): void => console.log(line);
    if (connections === undefined) {
      const result = await pingOnce(name, target, flags, say, interrupted.signal);
      if (json === true) console.log(jsonText(result, 2));
      if (result.error !== undefined) sayStopped(result.error);
      return result.error === undefined ? 0 : 1;
    }
    const { concurrency } = flags;
    const result = await openMany(name, target, { connections, concurrency }, interrupted.signal);
    console.log(json === true ? jsonText(result, 2) : manyText(result));
    for (const error of result.errors)
      sayStopped({ ...error, message: `${error.message} (${error.count} connections)` });
    return result.failed === 0 ? 0 : 1;
  } finally {
    process.off('SIGINT', interrupt);
  }
}
