/** Starts a listening process of `rdma-rpc perf` to which the tests of the command connect. */
import { spawn } from 'node:child_process';
import { main, type Outcome } from '../command.ts';

export interface Listener {
  readonly port: number;
  readonly pid: number;
  /** Returns its output on stderr so far. */
  said(): string;
  readonly ended: Promise<Outcome>;
  kill(): void;
}

export async function listener(args: readonly string[], host = '127.0.0.1'): Promise<Listener> {
  const child = spawn(process.execPath, [main, 'perf', ...args, '--listen', host, '-p', '0'], {
    env: { ...process.env, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [out, errors] = ['', ''];
  child.stdout.on('data', (text) => {
    out += String(text);
  });
  const ended = new Promise<Outcome>((resolve) => {
    child.on('close', (code) => resolve({ code: code ?? -1, out, errors }));
  });
  const port = await new Promise<number>((resolve, reject) => {
    child.stderr.on('data', (text) => {
      errors += String(text);
      const found = /^listening on .*:(\d+)$/m.exec(errors);
      if (found !== null) resolve(Number(found[1]));
    });
    child.on('close', () => reject(new Error(`it does not listen: ${errors}`)));
  });
  return { port, pid: child.pid!, said: () => errors, ended, kill: () => child.kill('SIGKILL') };
}
