/**
 * Starts a real DNS server (Debian's `knot`) for one test, on a free port of loopback and with a folder of
 * its own.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { turn } from '../outcomes.ts';

async function freePort(): Promise<number> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  socket.close();
  await once(socket, 'close');
  return port;
}

export class Knot {
  readonly #folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-knot-'));
  #port = 0;
  #serial = 0;
  #process: ChildProcess | undefined;

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** Starts the server with the records of the zone `test`. */
  async start(...records: readonly string[]): Promise<this> {
    this.#port = await freePort();
    writeFileSync(
      join(this.#folder, 'knot.conf'),
      `server:
  rundir: ${this.#folder}
  listen: 127.0.0.1@${this.#port}
database:
  storage: ${this.#folder}
zone:
- domain: test
  file: ${this.#folder}/test.zone
  zonefile-sync: -1
  zonefile-load: whole
  journal-content: none
- domain: broken
  file: ${this.#folder}/missing.zone
`,
    );
    this.#write(records);
    this.#process = spawn('knotd', ['-c', join(this.#folder, 'knot.conf')], { stdio: 'ignore' });
    await this.#shown();
    return this;
  }

  /** Replaces all records of the zone. Resolves when the server answers with the new zone. */
  async set(...records: readonly string[]): Promise<void> {
    this.#write(records);
    this.#process!.kill('SIGHUP');
    await this.#shown();
  }

  /** Stops the process without ending it, as if the network dropped all packets. */
  freeze(frozen: boolean): void {
    this.#process!.kill(frozen ? 'SIGSTOP' : 'SIGCONT');
  }

  async stop(): Promise<void> {
    const child = this.#process;
    if (child !== undefined && child.exitCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #write(records: readonly string[]): void {
    const soa = `@ SOA ns.test. admin.test. ${++this.#serial} 3600 600 86400 60`;
    const lines = ['$ORIGIN test.', '$TTL 60', soa, '@ NS ns', 'ns A 127.0.0.1', ...records];
    writeFileSync(join(this.#folder, 'test.zone'), `${lines.join('\n')}\n`);
  }

  async #shown(): Promise<void> {
    const resolver = new Resolver({ timeout: 500, tries: 1 });
    resolver.setServers([this.address]);
    for (;;) {
      const answer = await resolver.resolveSoa('test').catch(() => undefined);
      if (answer?.serial === this.#serial) return;
      if (this.#process!.exitCode !== null) throw new Error(`knotd ended with ${this.#process!.exitCode}`);
      await turn();
    }
  }
}
