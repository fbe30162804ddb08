/**
 * Starts `rdma-rpc tunnel` in separate processes, for tests that need real processes. The processes are
 * killed when the test is over.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { main } from '../command.ts';

export interface Running {
  readonly child: ChildProcess;
  readonly bound: string;
  readonly lines: string[];
  readonly exit: Promise<number | null>;
  /** Resolves when all lines have been read. */
  readonly closed: Promise<unknown>;
}

/** Starts an end, and resolves when it is ready. */
export function start(...args: string[]): Promise<Running> {
  return ready(process.execPath, [main, 'tunnel', ...args]);
}

/** Does the same with a process that may have only this number of file descriptors. */
export function startWithFew(descriptors: number, ...args: string[]): Promise<Running> {
  const limited = `ulimit -n ${descriptors} && exec "$@"`;
  return ready('/bin/sh', ['-c', limited, 'sh', process.execPath, main, 'tunnel', ...args]);
}

async function ready(program: string, args: readonly string[]): Promise<Running> {
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exit = once(child, 'exit').then(([code]) => code as number | null);
  const lines: string[] = [];
  const output = createInterface(child.stderr!);
  const closed = once(output, 'close');
  const bound = await new Promise<string>((resolve, reject) => {
    output.on('line', (line) => {
      lines.push(line);
      const found = /^(?:serving|listening) on (\S+),/.exec(line);
      if (found !== null) resolve(found[1]!);
    });
    void exit.then(() => reject(new Error(lines.join('\n'))));
  });
  return { child, bound, lines, exit, closed };
}
