/**
 * Provides a newcomer's folder, programs and terminals, for the tests of this folder. A shell runs all
 * commands, as on the page.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { commandsOf, filesOf } from '../package/quick-start.ts';

export const root: string = fileURLToPath(new URL('../..', import.meta.url));
/**
 * The folder in which test/quickstart/main.mjs has installed the packages of test/quickstart/package.json.
 */
export const tools: string = join(
  process.env.RDMA_RPC_QUICKSTART ?? join(root, 'build/quickstart'),
  'node_modules',
);
const page = readFileSync(join(root, 'docs/start/quick-start.md'), 'utf8');

/** The page's files for the service, by name. */
export const files: ReadonlyMap<string, string> = filesOf(page);
/** The page's commands, in order. */
export const commands: readonly string[] = commandsOf(page);
/** Returns the command that `pattern` matches. */
export function commandWith(pattern: RegExp): string {
  const found = commands.filter((command) => pattern.test(command));
  if (found.length !== 1) throw new Error(`the quick start has ${found.length} commands like ${pattern}`);
  return found[0]!;
}

/** A folder that is removed at the end of the run, together with all processes that still run. */
export const work: string = mkdtempSync(join(tmpdir(), 'rdma-rpc-quickstart-'));
const running = new Set<ChildProcess>();

export function leave(): void {
  for (const child of running) end(child);
  rmSync(work, { recursive: true, force: true });
}

/** Ends a shell and the processes that it has started. */
function end(child: ChildProcess): void {
  try {
    process.kill(-child.pid!, 'SIGKILL');
  } catch {} // The process has already ended.
}

export interface Terminal {
  readonly cwd: string;
  /**
   * One of the installed Nodes, such as `node-24`. If the value is undefined, the Node of this process is
   * used.
   */
  readonly node?: string;
  readonly env?: Readonly<Record<string, string>>;
}

function start(command: string, { cwd, node, env }: Terminal): ChildProcess {
  const bin = node === undefined ? dirname(process.execPath) : join(tools, node, 'bin');
  const child = spawn('sh', ['-c', command], {
    cwd,
    // The command runs in a process group of its own, so that no process outlives the test. The settings of
    // the npm or vitest that runs this test are removed.
    detached: true,
    env: {
      ...outside(),
      PATH: `${bin}${delimiter}${process.env.PATH}`,
      npm_config_prefer_offline: 'true',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  child.on('close', () => running.delete(child));
  return child;
}

function outside(): NodeJS.ProcessEnv {
  const ours = /^(npm_(?!config_(registry|cache|userconfig))|VITEST|NODE_ENV$|NODE_OPTIONS$|INIT_CWD$)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name)));
}

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly errors: string;
}

/** Runs a command to its end, whether it succeeds or fails. */
export function attempt(command: string, terminal: Terminal): Promise<Ended> {
  const child = start(command, terminal);
  let out = '';
  let errors = '';
  child.stdout!.on('data', (chunk) => (out += chunk));
  child.stderr!.on('data', (chunk) => (errors += chunk));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, out, errors })));
}

/** Runs a command that must succeed. Resolves to the output of the command. */
export async function run(command: string, terminal: Terminal): Promise<string> {
  const { code, out, errors } = await attempt(command, terminal);
  if (code !== 0) throw new Error(`${command} ended with ${code}:\n${out}${errors}`);
  return out;
}

/**
 * Starts a server, runs a client when the server listens, and ends the server. Resolves to the output of the
 * client.
 */
export async function talk(server: string, client: string, terminal: Terminal): Promise<string> {
  const child = start(server, terminal);
  try {
    await new Promise<void>((resolve, reject) => {
      let seen = '';
      const look = (chunk: unknown) => {
        seen += chunk;
        if (/^listening on /m.test(seen)) resolve();
      };
      child.stdout!.on('data', look);
      child.stderr!.on('data', look);
      child.on('close', (code) => reject(new Error(`${server} ended with ${code}:\n${seen}`)));
    });
    return await run(client, terminal);
  } finally {
    end(child);
  }
}

/** Returns whether a program on this machine uses the quick start's port. */
export function portTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
    socket.on('close', () => socket.destroy());
    socket.on('connect', () => socket.destroy());
  });
}

let folders = 0;

/**
 * Makes a folder with the quick start's files, a package.json of `type`, and `modules` as its node_modules.
 */
export function folder(type: 'module' | 'commonjs', modules: string, given = files): string {
  const path = join(work, `folder-${++folders}`);
  mkdirSync(path);
  writeFileSync(join(path, 'package.json'), JSON.stringify({ name: 'greeter', private: true, type }));
  for (const [name, content] of given) writeFileSync(join(path, name), content);
  symlinkSync(modules, join(path, 'node_modules'));
  return path;
}

/** Returns the quick start's program for a CommonJS module, which cannot use await at its top level. */
export function inFunction(program: string): string {
  const lines = program.split('\n');
  const imports = lines.filter((line) => line.startsWith('import '));
  const rest = lines.filter((line) => !line.startsWith('import '));
  return [...imports, 'async function main(): Promise<void> {', ...rest, '}', 'void main();', ''].join('\n');
}
