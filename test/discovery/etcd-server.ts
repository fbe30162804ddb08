/**
 * Starts a real etcd of this machine (Debian's `etcd-server`) for one test. The etcd is started on free ports
 * of loopback with its own folder, and is stopped and started again with its data or empty.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

export class EtcdServer {
  readonly url: string;
  readonly #peerUrl: string;
  readonly #flags: readonly string[];
  readonly #folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-etcd-'));
  #process: ChildProcess | undefined;

  private constructor(scheme: string, port: number, peerPort: number, flags: readonly string[]) {
    this.url = `${scheme}://127.0.0.1:${port}`;
    this.#peerUrl = `http://127.0.0.1:${peerPort}`;
    this.#flags = flags;
  }

  /**
   * Starts an etcd server. `flags` are additional arguments of etcd. With flags of TLS, `scheme` is https.
   */
  static async start(flags: readonly string[] = [], scheme = 'http'): Promise<EtcdServer> {
    const server = new EtcdServer(scheme, await freePort(), await freePort(), flags);
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    const { url } = this;
    const places = ['--listen-client-urls', url, '--advertise-client-urls', url];
    const peers = ['--listen-peer-urls', this.#peerUrl, '--initial-advertise-peer-urls', this.#peerUrl];
    const cluster = [
      '--initial-cluster',
      `default=${this.#peerUrl}`,
      '--data-dir',
      join(this.#folder, 'data'),
    ];
    const child = spawn('etcd', [...places, ...peers, ...cluster, ...this.#flags], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ETCD_UNSUPPORTED_ARCH: process.arch },
    });
    this.#process = child;
    let log = '';
    await new Promise<void>((resolve, reject) => {
      child.stderr.on('data', (chunk: Buffer) => {
        if (log.length < 1 << 20) log += chunk.toString();
        if (log.includes('ready to serve client requests')) resolve();
      });
      child.once('exit', (code) => reject(new Error(`etcd ended with ${code}: ${log}`)));
      child.once('error', reject);
    });
  }

  /** Stops etcd as a crash of the process or its machine would. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  /** Makes etcd begin without keys at its next start. */
  empty(): void {
    rmSync(join(this.#folder, 'data'), { recursive: true, force: true });
  }

  /** Stops the process without ending it, as if a network dropped all packets. */
  freeze(frozen: boolean): void {
    this.#process?.kill(frozen ? 'SIGSTOP' : 'SIGCONT');
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
