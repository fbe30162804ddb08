/**
 * An etcd that belongs to the fleet, from Debian's etcd-server, in a folder that is removed with it. main.ts
 * uses this file.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';

/** The text that is printed where etcd is missing. */
export const howToInstall =
  'etcd is not installed (Debian, Ubuntu: apt-get install etcd-server); a file is the registry instead';

export function hasEtcd(): boolean {
  return spawnSync('etcd', ['--version']).error === undefined;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

export interface Etcd {
  readonly port: number;
  readonly process: ChildProcess;
}

/**
 * Resolves when etcd serves on all addresses of this namespace. Rejects with its log when it ends before
 * that.
 */
export async function startEtcd(folder: string): Promise<Etcd> {
  const port = await freePort();
  const peers = `http://127.0.0.1:${await freePort()}`;
  const places = ['--listen-client-urls', `http://0.0.0.0:${port}`];
  const child = spawn(
    'etcd',
    [
      ...[...places, '--advertise-client-urls', `http://127.0.0.1:${port}`],
      ...['--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers],
      ...['--initial-cluster', `default=${peers}`, '--data-dir', join(folder, 'etcd')],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ETCD_UNSUPPORTED_ARCH: process.arch } },
  );
  let log = '';
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      if (log.length < 1 << 16) log += chunk.toString();
      if (log.includes('ready to serve client requests')) resolve();
    });
    child.once('exit', (code) => reject(new Error(`etcd ended with ${code}: ${log}`)));
    child.once('error', reject);
  });
  return { port, process: child };
}
