/**
 * Tests two containers of one pod. Each process has user, pid, mount, network and IPC namespaces of its own
 * and is a different user. The two containers share only a directory with the socket. Each side is killed at
 * seeded moments, which range from the first byte of the handshake to calls of all sizes in flight.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { compiled } from '../runtime/process/processes.ts';
import type { Census, Order, Told } from './peer.ts';

const users = { server: 10_001, client: 10_002 };
type Role = keyof typeof users;
/** The number of kills of each side. 100 kills in total take two minutes. */
const kills = Number(process.env.RDMA_RPC_KILLS ?? 8);

function container(role: Role): string[] {
  const user = `${users[role]}`;
  return [
    ...['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', '--'],
    ...[
      'unshare',
      '--user',
      '--map-root-user',
      '--pid',
      '--fork',
      '--kill-child',
      '--mount',
      '--net',
      '--ipc',
    ],
    ...['--mount-proc', '--'],
  ];
}

/** Returns the reason why this system does not allow such containers, or '' when it allows them. */
function whyNone(): string {
  for (const role of ['server', 'client'] as const) {
    const [command = '', ...rest] = container(role);
    const { status, error, stderr } = spawnSync(command, [...rest, 'true'], { encoding: 'utf8' });
    if (status !== 0) return error?.message ?? stderr.trim();
  }
  return '';
}

class Peer {
  readonly child: ChildProcess;
  #last: Told = {};
  readonly #heard: ((told: Told) => boolean)[] = [];
  readonly ended: Promise<number | NodeJS.Signals | null>;

  constructor(role: Role, path: string, fabric = 'auto') {
    const [command = '', ...rest] = container(role);
    const arguments_ = [...rest, process.execPath, compiled('peer', 'containers'), role, path, fabric];
    this.child = spawn(command, arguments_, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.child.on('message', (told: Told) => {
      this.#last = { ...this.#last, ...told };
      for (const listener of [...this.#heard])
        if (listener(this.#last)) this.#heard.splice(this.#heard.indexOf(listener), 1);
    });
    this.ended = new Promise((resolve) => this.child.once('exit', (code, signal) => resolve(signal ?? code)));
  }

  /** Resolves to the report of the process, once the condition holds. */
  until(holds: (told: Told) => boolean): Promise<Told> {
    return new Promise((resolve, reject) => {
      const listener = (told: Told): boolean => {
        if (holds(told)) resolve(told);
        return holds(told);
      };
      if (listener(this.#last)) return;
      this.#heard.push(listener);
      void this.ended.then((how) => reject(new Error(`the process has ended with ${how}`)));
    });
  }

  order(what: Order): void {
    this.child.send(what);
  }

  async census(): Promise<Census> {
    this.#last = { ...this.#last, census: undefined } as Told;
    this.order('census');
    return (await this.until((told) => told.census !== undefined)).census!;
  }

  /**
   * Resolves to the census of the process as soon as the condition holds, or to its current census after a
   * time limit.
   */
  async censusWhere(holds: (census: Census) => boolean): Promise<Census> {
    const end = performance.now() + 20_000;
    for (;;) {
      const census = await this.census();
      if (holds(census) || performance.now() > end) return census;
    }
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }
}

/** Returns random numbers from a seed, by mulberry32. */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

const none = whyNone();
describe.skipIf(none !== '')(`two containers${none === '' ? '' : `: not run: ${none}`}`, () => {
  let folder: string;
  let path: string;
  const peers: Peer[] = [];
  const start = (role: Role, fabric?: string): Peer => {
    const peer = new Peer(role, path, fabric);
    peers.push(peer);
    return peer;
  };
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-pod-'));
    chmodSync(folder, 0o777);
    path = join(folder, 'socket');
  });
  afterEach(async () => {
    await Promise.all(peers.splice(0).map((peer) => peer.kill()));
    rmSync(folder, { recursive: true });
  });
  const serve = async (): Promise<Peer> => {
    const server = start('server');
    await server.until(({ listens }) => listens === true);
    return server;
  };

  test("'auto' shares only the memory that one session needs", { timeout: 60_000 }, async () => {
    const server = await serve();
    const client = start('client');
    client.order('calls');
    const { wrong } = await client.until(({ rounds = 0 }) => rounds >= 20);
    expect(wrong).toBe(0);
    client.order('session');
    const { session, log } = await client.until((told) => told.session !== undefined);
    expect(session).toMatchObject({ fabric: 'shm-fd', exposure: 'staging' });
    expect(log?.[0]).toMatch(/fabric shm-fd \(staging\) chosen; shm: .*two pid namespaces/);
    const [mine, others] = [await client.census(), await server.census()];
    const shared = Object.entries(mine.inodes).filter(([inode]) => inode in others.inodes);
    // Each side maps the table, the rings and the receives. The client also maps the memory through which
    // large messages are copied.
    expect([...new Set(shared.map(([, name]) => name))].sort()).toEqual(
      ['device', 'queue-pair', 'receive slab', 'staging'].sort(),
    );
    expect(shared.filter(([, name]) => name === 'queue-pair')).toHaveLength(2);
    expect(shared.filter(([, name]) => name === 'device')).toHaveLength(2);
    expect(shared.filter(([, name]) => name === 'receive slab')).toHaveLength(2);
  });

  test('a client killed at any moment leaves nothing at the server', { timeout: 300_000 }, async () => {
    const next = chance(1);
    const server = await serve();
    // The first client creates the objects that exist once and then stay, such as the thread's caches.
    const first = start('client');
    first.order('calls');
    await first.until(({ rounds = 0 }) => rounds >= 3);
    await first.kill();
    const over = ({ sessions, memoryRegions }: Census) => sessions === 0 && memoryRegions === 0;
    const before = await server.censusWhere(over);
    for (let i = 0; i < kills; ++i) {
      const client = start('client');
      const at = next(6);
      await client.until(({ rounds }) => rounds !== undefined);
      client.order('calls');
      // The first processes die in the handshake.
      if (at > 0) await client.until(({ rounds = 0 }) => rounds >= at);
      for (let turns = next(2000); turns > 0; --turns) await new Promise(setImmediate);
      await client.kill();
    }
    const after = await server.censusWhere(
      (census) => over(census) && census.descriptors <= before.descriptors,
    );
    const counts = ({ mapped, inodes, ...others }: typeof after) => Object.entries({ ...mapped, ...others });
    const known = new Map(counts(before));
    expect(counts(after).filter(([name, count]) => count > (known.get(name) ?? 0))).toEqual([]);
  });

  test('a server killed at any moment costs calls and nothing else', { timeout: 300_000 }, async () => {
    const next = chance(2);
    let server = await serve();
    const client = start('client');
    client.order('calls');
    await client.until(({ rounds = 0 }) => rounds >= 3);
    const before = await client.census();
    for (let i = 0; i < kills; ++i) {
      const { rounds: done = 0 } = await client.until(() => true);
      const at = done + next(6);
      // Some of these clients die before their first call has ended.
      if (at > done) await client.until(({ rounds = 0 }) => rounds >= at);
      for (let turns = next(2000); turns > 0; --turns) await new Promise(setImmediate);
      await server.kill();
      server = await serve();
    }
    const { rounds: done = 0 } = await client.until(() => true);
    const { wrong, started, settled } = await client.until(({ rounds = 0 }) => rounds >= done + 3);
    expect(wrong).toBe(0);
    expect(settled).toBe(started);
    const after = await client.censusWhere(
      ({ queuePairs, descriptors, mapped }) =>
        queuePairs === 1 &&
        descriptors <= before.descriptors &&
        mapped['queue-pair'] === 2 &&
        mapped['receive slab'] === 2,
    );
    expect(after.queuePairs).toBe(1);
    expect(after.descriptors).toBeLessThanOrEqual(before.descriptors);
    expect(after.mapped['queue-pair']).toBe(2);
    expect(after.mapped['receive slab']).toBe(2);
  });
});
