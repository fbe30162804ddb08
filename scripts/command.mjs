/**
 * Runs a command for a script. Its output is kept and shown only when it fails, unless the caller wants the
 * output at once.
 */
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

/**
 * Our commands take longer than this only when they hang. A sanitized build, which takes longest, needs about
 * three minutes alone on two cores. On a slow machine with other work the command took fifteen.
 */
const LIMIT_MS = 30 * 60_000;

/** The time in milliseconds that a command has to end after SIGTERM. */
const GRACE_MS = 10_000;

const HEAD_LINES = 40;
const TAIL_LINES = 40;

/**
 * Returns the parts of a failed command's output that are shown: the beginning, where compilers report the
 * error, and the end.
 */
export function excerpt(output) {
  const lines = output.trimEnd().split('\n');
  const left = lines.length - HEAD_LINES - TAIL_LINES;
  if (left <= 0) return lines.join('\n');
  return [...lines.slice(0, HEAD_LINES), `… ${left} lines …`, ...lines.slice(-TAIL_LINES)].join('\n');
}

/**
 * `run` throws this error. `code` is the exit code or another reason of the end; `output` is the output of
 * the command.
 */
export class CommandFailed extends Error {
  constructor(command, code, output) {
    super(`${command.join(' ')} ended with ${code}`);
    this.code = code;
    this.output = output;
  }
}

/**
 * Runs `command` in the project's root, or in `cwd`, without stdin. Resolves to the output of the command;
 * rejects with CommandFailed. `live: true` also passes the output through at once. After `limitMs` the
 * command gets SIGTERM, and later SIGKILL. `run` does not wait for surviving child processes, which keep the
 * output open. `group: true` puts the command and its processes into a separate process group, which is
 * killed when the command has ended. Otherwise a worker in an endless loop would run for ever.
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
        // The group has no process left.
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

/** Returns the path of a program on PATH, or undefined. */
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
