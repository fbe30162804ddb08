/** Starts programs of Debian and a tunnel in front of their servers, for programs.slow.ts. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { start } from '../cli/tunnel/running.ts';

const startMaxMs = 60_000;
const outputMax = 16 * 1024 * 1024;
const execute = promisify(execFile);

/** Returns the output of a program, stderr last. Rejects with both when it fails. */
export async function output(command: string, ...args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await execute(command, args, { maxBuffer: outputMax });
  return stdout + stderr;
}

/** Returns a folder of the test, which is removed with the processes of the test. */
export function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'rdma-rpc-programs-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Starts a server that stays in the foreground, and resolves when something listens at `port`. */
export async function serve(
  port: number,
  command: string,
  ...args: readonly string[]
): Promise<ChildProcess> {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill('SIGTERM');
    await exit;
  });
  let said = '';
  child.stderr.on('data', (bytes: Buffer) => {
    said += String(bytes);
  });
  for (const until = performance.now() + startMaxMs; ; await sleep(50)) {
    const socket = connect(port, '127.0.0.1');
    const open = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (open) return child;
    if (child.exitCode !== null || performance.now() > until)
      throw new Error(`${command} does not listen: ${said}`);
  }
}

/** Puts a tunnel over shared memory in front of 127.0.0.1:`port`. Returns the port of its near end. */
export async function tunnelTo(port: number): Promise<number> {
  const far = await start('--serve', `unix:${join(folder(), 'far')}`, '--to', `127.0.0.1:${port}`);
  const near = await start('--listen', '127.0.0.1:0', '--to', far.bound);
  return Number(near.bound.slice(near.bound.lastIndexOf(':') + 1));
}
