/**
 * Starts the processes of the tests and talks to them. This file uses compiled files in dist, because a child
 * process cannot run TypeScript.
 */
import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RuntimeOptions } from 'rdma-rpc';
import type { Sample } from '../../soak/sample.ts';
import type { Command, Report } from './echo-server.ts';

/**
 * The directory of compiled files. In a guest it has fewer and larger files than dist (test/rdma/suites.mjs).
 */
const dist = process.env.RDMA_RPC_TEST_DIST ?? fileURLToPath(new URL('../../../dist', import.meta.url));

/**
 * Flags for a process that imports modules of the runtime. With them, `rdma-rpc` means the same modules
 * instead of a bundle that has its own copies.
 */
export const oneCopy = ['--conditions=rdma-rpc-modules'];

/** Returns the path of a compiled test file. Throws an error with the command that compiles it. */
export function compiled(name: string, folder = 'runtime/process'): string {
  const path = join(dist, 'test', folder, `${name}.js`);
  if (!existsSync(path)) throw new Error(`${path} is missing: run npm run build`);
  return path;
}

export class ServerProcess {
  readonly child: ChildProcess;
  readonly address: string;

  private constructor(child: ChildProcess, address: string) {
    this.child = child;
    this.address = address;
  }

  /** Starts a server in a process of its own. `how` has options of the process, such as its environment. */
  static async start(
    address = '127.0.0.1:0',
    options: RuntimeOptions = {},
    how: ForkOptions = {},
  ): Promise<ServerProcess> {
    // Appends to the existing value, which may be a command that starts Node.
    const execArgv = [...(how.execArgv ?? process.execArgv), ...oneCopy];
    const child = fork(compiled('echo-server'), [address, JSON.stringify(options)], { ...how, execArgv });
    const { address: bound } = await nextMessage<Report>(child);
    return new ServerProcess(child, bound!);
  }

  async report(): Promise<Required<Omit<Report, 'address' | 'sample'>>> {
    const answer = nextMessage<Report>(this.child);
    this.child.send('stats' satisfies Command);
    return (await answer) as Required<Omit<Report, 'address' | 'sample'>>;
  }

  /** Resolves to a sample of the resources that the process holds at rest. */
  async sample(): Promise<Sample> {
    const answer = nextMessage<Report>(this.child);
    this.child.send('sample' satisfies Command);
    return (await answer).sample!;
  }

  /** Resolves to the exit code, and to the resources that were left after the shutdown. */
  async shutdown(): Promise<{ code: number | null; stats: Record<string, number> }> {
    const exit = exited(this.child);
    const last = nextMessage<Report>(this.child);
    this.child.send('shutdown' satisfies Command);
    const { stats = {} } = await last;
    return { code: await exit, stats };
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
    const exit = exited(this.child);
    this.child.kill(signal);
    return exit;
  }
}

export function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null): void => reject(new Error(`the process ended with ${code}`));
    child.once('exit', onExit);
    child.once('message', (message) => {
      child.off('exit', onExit);
      resolve(message as T);
    });
  });
}

/** Resolves to the exit code, or to null after a signal. */
export function exited(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(child.exitCode);
  return new Promise((resolve) => child.once('exit', resolve));
}
