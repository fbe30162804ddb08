/**
 * The common parts of the commands that connect to a server: a channel for the duration of the command, a
 * time limit, and error texts.
 */
import { type Command, InvalidArgumentError } from '#commander';
import pc from '#picocolors';
import type { Channel } from '../../runtime/client/channel-type.ts';
import { RpcError } from '../../runtime/core/errors/rpc-error.ts';
import { messageBytes } from '../../runtime/limits.ts';
import { jsonText, printable, printableLine } from '../output.ts';
import { securityOf, type TlsFlags, withFlagsNamed, withTlsFlags } from './tls-flags.ts';

export interface ConnectionFlags extends TlsFlags {
  readonly timeout: number;
  /** Prints JSON for programs on stdout, including errors. */
  readonly json?: true;
}

const timeoutMaxMs = 600_000;

function milliseconds(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= timeoutMaxMs) return value;
  throw new InvalidArgumentError(`Give milliseconds from 1 to ${timeoutMaxMs}.`);
}

export function withTimeout(command: Command): Command {
  return withTlsFlags(command)
    .option('--timeout <ms>', 'time limit for connecting and for each call', milliseconds, 5000)
    .option('--json', 'print JSON for programs; docs/schemas describes it');
}

/** Prints one sentence on stderr and, with --json, also JSON on stdout. The caller sets the exit code. */
export function sayError(error: unknown, { json }: { readonly json?: true }): void {
  const message = withFlagsNamed((error as Error).message);
  if (json === true) {
    const code = error instanceof RpcError ? { code: error.codeName } : {};
    console.log(jsonText({ error: { ...code, message } }));
  }
  console.error(pc.red(`error: ${error instanceof RpcError ? printableLine(message) : printable(message)}`));
}

/**
 * Runs `action` with a channel to the server and sets the exit code: the result of the action, 1 when a call
 * fails, or 2 for an invalid address or files that cannot be used.
 */
export async function withServer(
  address: string,
  flags: ConnectionFlags,
  action: (channel: Channel) => Promise<number>,
): Promise<void> {
  // The modules are loaded here, so that other commands need no addon.
  const { timeout } = flags;
  const { createChannel } = await import('../../runtime/client/channel.ts');
  let channel: Channel;
  try {
    channel = createChannel(address, {
      connectTimeoutMs: timeout,
      timeoutMs: timeout,
      // The user cannot change this limit by a flag, so the limit must not make a call fail.
      messageMaxBytes: messageBytes.max,
      log: () => undefined,
      ...securityOf(flags),
    });
  } catch (error) {
    sayError(error, flags);
    process.exitCode = 2;
    return;
  }
  try {
    await channel.ready();
    process.exitCode = await action(channel);
  } catch (error) {
    sayError(error, flags);
    process.exitCode = 1;
  } finally {
    await channel.close();
  }
}
