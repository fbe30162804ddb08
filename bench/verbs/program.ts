/**
 * Runs one program of the benchmark to its end. perftest and our own programs run in this way, on the machine
 * that has the devices.
 */
import { type ChildProcess, spawn } from 'node:child_process';

/** Default time limit in ms. A program that takes longer counts as hanging, and is killed. */
const defaultLimitMs = 60_000;

export interface Ended {
  code: number | null;
  output: string;
}

/**
 * Starts a program, and collects its output. `ended` resolves for each kind of exit, because the program's
 * output decides about success. The output names the signal at its end if a signal has ended the program.
 */
export function start(
  command: readonly string[],
  limitMs = defaultLimitMs,
): { child: ChildProcess; ended: Promise<Ended> } {
  const child = spawn(command[0]!, command.slice(1), {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: limitMs,
    killSignal: 'SIGKILL',
  });
  let output = '';
  child.stdout!.on('data', (chunk) => {
    output += chunk;
  });
  child.stderr!.on('data', (chunk) => {
    output += chunk;
  });
  const ended = new Promise<Ended>((resolve) => {
    child.on('error', (error) => resolve({ code: null, output: error.message }));
    child.on('close', (code, signal) => {
      const end =
        signal === null ? '' : `ended by ${signal}; after ${limitMs / 1000} s a program is killed\n`;
      resolve({ code, output: output + end });
    });
  });
  return { child, ended };
}
