/**
 * Starts processes for tests of `rdma-rpc ping`: a server that can be stopped, and the command while it runs.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { main, type Outcome } from '../command.ts';

const library = fileURLToPath(new URL('../../../dist/bundle/index.js', import.meta.url));

export interface ServerProcess {
  readonly address: string;
  signal(name: NodeJS.Signals): void;
}

/** Resolves when the server listens at a free port. */
export async function serverProcess(): Promise<ServerProcess> {
  const program = `
    const { createServer } = await import(${JSON.stringify(library)});
    console.log(await createServer({ log: () => undefined }).listen('127.0.0.1:0'));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const address = await new Promise<string>((resolve, reject) => {
    child.stdout.once('data', (text) => resolve(String(text).trim()));
    child.once('close', (code) => reject(new Error(`the server ended with ${code}`)));
  });
  return { address, signal: (name) => child.kill(name) };
}

export interface Running {
  /** Resolves when the process has printed this text to stdout or stderr. */
  hasPrinted(text: string): Promise<void>;
  signal(name: NodeJS.Signals): void;
  readonly ended: Promise<Outcome>;
}

/** Starts the command, without waiting for its end. */
export function start(...args: string[]): Running {
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...process.env, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [out, errors] = ['', ''];
  let look = (): void => undefined;
  child.stdout.on('data', (text) => {
    out += String(text);
    look();
  });
  child.stderr.on('data', (text) => {
    errors += String(text);
    look();
  });
  const ended = new Promise<Outcome>((resolve) => {
    child.on('close', (code) => resolve({ code: code ?? -1, out, errors }));
  });
  return {
    hasPrinted: (text) =>
      new Promise((resolve, reject) => {
        look = () => {
          if (out.includes(text) || errors.includes(text)) resolve();
        };
        look();
        void ended.then(() => reject(new Error(`it ended without ${text}: ${out}${errors}`)));
      }),
    signal: (name) => child.kill(name),
    ended,
  };
}
