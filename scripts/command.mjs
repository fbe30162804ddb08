/**
 * Runs a command for a script: its output is kept and shown only when it fails, unless the caller wants it
 * live.
 */
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

/**
 * No command of ours takes longer than this unless it hangs. A sanitized build, the longest, takes some three
 * minutes alone on two cores, and took fifteen beside others on a slow machine.
 */
const LIMIT_MS = 30 * 60_000;

/** What a command that was told to end may take for it. */
const GRACE_MS = 10_000;

const HEAD_LINES = 40;
const TAIL_LINES = 40;

/** Of a failed command's output: the beginning, where compilers say what is wrong, and the end. */
export function excerpt(output) {
  const lines = output.trimEnd().split('\n');
  const left = lines.length - HEAD_LINES - TAIL_LINES;
  if (left <= 0) return lines.join('\n');
  return [...lines.slice(0, HEAD_LINES), `… ${left} lines …`, ...lines.slice(-TAIL_LINES)].join('\n');
}

/** Thrown by `run`; `code` is the exit code or what else ended it, `output` what the command printed. */
export class CommandFailed extends Error {
  constructor(command, code, output) {
    super(`${command.join(' ')} ended with ${code}`);
    this.code = code;
    this.output = output;
  }
}

/**
 * Runs `command` in the project's root, or in `cwd`, without stdin. Resolves to what it printed; rejects with
 * CommandFailed. `live: true` passes the output through as well. After `limitMs` it gets SIGTERM, and later
 * SIGKILL; processes of its own that live on, with its output open, are not waited for. `group: true` puts it
 * and its processes into a group of their own, of which nothing is left when the command has ended: a worker
 * in an endless loop would run for ever.
 */
export function run(command, { cwd = root, env = {}, live = false, limitMs = LIMIT_MS, group = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command[0], command.slice(1), {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: group,
    });
    let output = '';
    const endGroup = () => {
      if (!group || child.pid === undefined) return;
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // Nothing of it is left.
      }
    };
    const abandon = () => {
      child.kill('SIGKILL');
      endGroup();
      child.stdout.destroy();
      child.stderr.destroy();
    };
    let timer = setTimeout(() => {
      child.kill('SIGTERM');
      timer = setTimeout(abandon, GRACE_MS);
    }, limitMs);
    const take = (stream) => (chunk) => {
      output += chunk;
      if (live) stream.write(chunk);
    };
    child.stdout.on('data', take(process.stdout));
    child.stderr.on('data', take(process.stderr));
    child.on('error', (error) => {
      clearTimeout(timer);
      reject(new CommandFailed(command, error.message, ''));
    });
    child.on('exit', endGroup);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (code === 0) resolve(output);
      else reject(new CommandFailed(command, code ?? signal, output));
    });
  });
}

/** Path of a program on PATH, or undefined. */
export function which(program) {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .map((dir) => join(dir, program))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}
