/**
 * The servers of the fleet, their registry and their gateway, as processes that this process starts and ends.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Etcd, startEtcd } from './etcd.ts';
import type { Hosts, Place } from './hosts.ts';
import { ask } from './load.ts';
import { publish, type RegistryName } from './registry.ts';

interface Member {
  readonly address: string;
  readonly place: Place;
}

/** A server from the gateway's point of view. */
export interface SeenServer {
  readonly address: string;
  readonly state: string;
  readonly stale: boolean;
}

/** The longest time in ms until the gateway knows of a change. */
const patienceMs = 120_000;

const program = (name: string): string => fileURLToPath(new URL(`${name}.js`, import.meta.url));

/** Resolves with the next message of a child. Rejects when the child ends before. */
async function heard(child: ChildProcess): Promise<string> {
  const [message] = await Promise.race([
    once(child, 'message') as Promise<[string]>,
    once(child, 'exit').then(([code]) =>
      Promise.reject(new Error(`a process of the fleet ended with ${code}`)),
    ),
  ]);
  return message;
}

export class Fleet {
  readonly names: readonly string[];
  readonly #members = new Map<string, Member>();
  readonly #hosts: Hosts;
  readonly #folder: string;
  readonly #etcd: Etcd | undefined;
  readonly #gateway: ChildProcess;
  readonly #agent = new Agent({ keepAlive: true });
  /**
   * Cleans up when this process ends without reaching `end`. Otherwise etcd and a stopped server would stay.
   */
  readonly #onExit = (): void => {
    for (const child of this.#children()) child.kill('SIGKILL');
  };
  /** The URL of the gateway. It is empty before `begin`. */
  url = '';

  private constructor(size: number, hosts: Hosts, folder: string, etcd: Etcd | undefined) {
    this.names = Array.from({ length: size }, (_, i) => `server-${i}`);
    this.#hosts = hosts;
    this.#folder = folder;
    this.#etcd = etcd;
    publish(this.#registryAt('127.0.0.1'), []);
    this.#gateway = fork(program('gateway'), [this.#registryAt('127.0.0.1')], { execArgv: [] });
    process.once('exit', this.#onExit);
  }

  /**
   * Starts the registry, `size` servers and the gateway. Files are in `folder`, those of etcd if it is
   * used.
   */
  static async start(size: number, hosts: Hosts, folder: string, withEtcd: boolean): Promise<Fleet> {
    const fleet = new Fleet(size, hosts, folder, withEtcd ? await startEtcd(folder) : undefined);
    try {
      fleet.url = await heard(fleet.#gateway);
      for (const name of fleet.names) await fleet.#start(name);
      await fleet.settled();
      return fleet;
    } catch (error) {
      await fleet.end();
      throw error;
    }
  }

  /**
   * Returns the name under which clients find the registry. `host` is the address under which etcd is
   * reached.
   */
  #registryAt(host: string): RegistryName {
    return this.#etcd === undefined
      ? `file:${join(this.#folder, 'addresses.json')}`
      : `etcd:http://${host}:${this.#etcd.port}`;
  }

  #publish(): void {
    publish(
      this.#registryAt('127.0.0.1'),
      [...this.#members.values()].map(({ address }) => address),
    );
  }

  async #start(name: string): Promise<void> {
    const place = this.#hosts.start(program('server'), (host, outside) => [
      name,
      host,
      this.#registryAt(outside),
    ]);
    await heard(place.process);
    place.connect();
    place.process.send('go');
    const address = await heard(place.process);
    this.#members.set(name, { address, place });
    this.#publish();
  }

  async #stop(name: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const { place } = this.#members.get(name)!;
    const ended = once(place.process, 'exit');
    this.#members.delete(name);
    // An orchestrator takes a server off its list before it stops it. A server that crashes is still on the
    // list.
    if (signal === 'SIGTERM') this.#publish();
    place.process.kill(signal);
    await ended;
    this.#publish();
  }

  /** Lets a server drain, and replaces it. */
  async roll(name: string): Promise<void> {
    await this.#stop(name, 'SIGTERM');
    await this.#start(name);
    await this.settled();
  }

  /** Ends a server without notice, and replaces it. */
  async kill(name: string): Promise<void> {
    await this.#stop(name, 'SIGKILL');
    await this.#start(name);
    await this.settled();
  }

  /** Cuts a server off for this time. */
  async cut(name: string, ms: number): Promise<void> {
    const { place } = this.#members.get(name)!;
    place.cutOff(true);
    await pause(ms);
    place.cutOff(false);
    await this.settled();
  }

  addressOf(name: string): string {
    return this.#members.get(name)?.address ?? '';
  }

  async seen(): Promise<readonly SeenServer[]> {
    return (await ask(this.#agent, `${this.url}/fleet`)).json as SeenServer[];
  }

  /** Waits until the gateway is connected to each server. Rejects after a while. */
  async settled(): Promise<void> {
    const untilMs = performance.now() + patienceMs;
    for (;;) {
      const ready = new Set(
        (await this.seen()).filter(({ state }) => state === 'ready').map((each) => each.address),
      );
      if (this.names.every((name) => ready.has(this.addressOf(name)))) return;
      if (performance.now() > untilMs)
        throw new Error(`the gateway does not reach all servers: ${[...ready].join()}`);
      await pause(50);
    }
  }

  #children(): ChildProcess[] {
    const servers = [...this.#members.values()].map(({ place }) => place.process);
    return [this.#gateway, ...servers, ...(this.#etcd === undefined ? [] : [this.#etcd.process])];
  }

  /** Ends all processes. */
  async end(): Promise<void> {
    process.off('exit', this.#onExit);
    this.#agent.destroy();
    const running = this.#children().filter((child) => child.exitCode === null && child.signalCode === null);
    await Promise.all(
      running.map((child) => {
        const exit = once(child, 'exit');
        child.kill('SIGKILL');
        return exit;
      }),
    );
  }
}
