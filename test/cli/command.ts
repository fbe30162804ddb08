/** Runs the built command as a user would. */
import { execFile, spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

export const main = fileURLToPath(new URL('../../dist/bundle/cli.js', import.meta.url));

export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly errors: string;
}

export function run(...args: string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    const env = { ...process.env, NO_COLOR: '1' };
    execFile(process.execPath, [main, ...args], { env }, (error, out, errors) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, errors });
    });
  });
}

/** Does the same in another folder, and adds environment variables. */
export function runIn(cwd: string, more: NodeJS.ProcessEnv, ...args: string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    const env = { ...process.env, ...more, NO_COLOR: '1' };
    execFile(process.execPath, [main, ...args], { cwd, env }, (error, out, errors) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, errors });
    });
  });
}

/** Does the same with a stdin: either the text to read, or a descriptor. */
export async function runWith(stdin: string | number, ...args: string[]): Promise<Outcome> {
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...process.env, NO_COLOR: '1' },
    stdio: [typeof stdin === 'number' ? stdin : 'pipe', 'pipe', 'pipe'],
  });
  if (typeof stdin === 'string') child.stdin!.end(stdin);
  const code = new Promise<number>((resolve) => child.once('exit', (status) => resolve(status ?? -1)));
  const [out, errors] = await Promise.all([text(child.stdout!), text(child.stderr!)]);
  return { code: await code, out, errors };
}
