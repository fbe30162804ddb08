/**
 * Registers a server in etcd with a lease, which is renewed while the server is healthy. When the process
 * ends, stops running or loses its network, the lease expires and the key disappears. On shutdown the key is
 * deleted before clients are notified, so that no new client connects. There is one registration per server
 * and service. It runs in the root context, on the server's JS thread.
 */

import { checkedServers, type ServerAddress } from '../../client/connections/servers.ts';
import { clockMs } from '../../clock.ts';
import { parseAddress } from '../../control/socket/address.ts';
import type { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { textOf } from '../../core/foreign.ts';
import { type Log, logged, warn } from '../../core/log.ts';
import { checkedOptions, ownedBy } from '../../core/options.ts';
import { inRoot } from '../../core/scopes.ts';
import type { CallOptions } from '../../core/types.ts';
import type { Warn } from '../../core/warnings.ts';
import type { Server } from '../../server/server-type.ts';
import type { HealthSource } from '../../services/health-source.ts';
import * as limits from '../limits.ts';
import { pause, registryBackoff } from '../watched.ts';
import { entryOf } from './entries.ts';
import { EtcdClient, type Member } from './etcd-client.ts';
import { checkedService, type EtcdOptions, etcdRules, type ResolvedEtcdOptions } from './options.ts';

export interface RegistrationOptions extends EtcdOptions, ServerAddress {
  /** The name of the service. The key of the server is `service/address`. */
  service: string;
  /**
   * Time in ms for which the server stays in the list after its process has ended or stopped running; rounded
   * up to seconds. Default 10,000, from 2,000 to 3,600,000.
   */
  ttlMs?: number;
  /**
   * The result of `addHealth`. The server is in the list only while this health source reports SERVING for
   * the server as a whole.
   */
  health?: HealthSource;
  /**
   * Receives a line when the server cannot be registered or its lease cannot be renewed. Default: a warning
   * of the process.
   */
  log?: Log;
}

/** The registration of a server; the result of `register`. */
export interface Registration extends AsyncDisposable {
  /** True while this process believes that the server is in the list. */
  readonly registered: boolean;
  /** Resolves when the server is in the list for the first time; rejects when it was closed before. */
  ready(): Promise<void>;
  /**
   * Removes the server from the list. `shutdown()` of the server calls this function. Always resolves. When
   * etcd cannot be reached, the key disappears when its lease expires.
   */
  close(): Promise<void>;
}

/** A server, or a worker group of `serveWorkers`, which is one server with several threads. */
export type Registrable = Pick<Server, 'onShutdown'>;

interface Resolved extends ResolvedEtcdOptions {
  readonly service: string;
  readonly address: string;
  readonly weight: number | undefined;
  readonly zone: string | undefined;
  readonly doors: readonly string[] | undefined;
  readonly attributes: Readonly<Record<string, string>> | undefined;
  readonly ttlMs: number;
  readonly health: HealthSource | undefined;
  readonly log: Log | undefined;
}

const rules = ownedBy('register', {
  ...etcdRules,
  service: { kind: 'text', default: '', maxBytes: 4096 },
  address: { kind: 'text', default: '', maxBytes: 4096 },
  // The range is checked together with the address.
  weight: { kind: 'number', range: { default: undefined, min: 0, max: Number.MAX_VALUE } },
  zone: { kind: 'text', default: '', maxBytes: 4096 },
  doors: { kind: 'texts', maxBytes: 4096 },
  attributes: { kind: 'source' },
  ttlMs: { kind: 'integer', range: limits.ttlMs },
  health: { kind: 'source' },
  log: { kind: 'function' },
});

/** Returns the address with its weight, zone, doors and attributes. Throws when clients could not use it. */
function checkedEntry({ address, weight, zone, doors, attributes }: Resolved): ServerAddress {
  const named = parseAddress(address);
  if (named.kind === 'tcp' && ['0.0.0.0', '::', ''].includes(named.host))
    throw new TypeError(`register: address: ${address} is no host that clients can reach; give its name`);
  const server = { address, weight, zone: zone || undefined, doors, attributes };
  const [checked] = checkedServers('register', [server]);
  return { ...server, address: checked!.address, doors: checked!.doors };
}

class EtcdRegistration implements Registration {
  registered = false;
  readonly #client: EtcdClient;
  readonly #entry: { readonly key: Uint8Array; readonly value: Uint8Array };
  readonly #options: Resolved;
  readonly #warn: Warn;
  readonly #name: string;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  /** The current lease; undefined while the server must not be in the list. */
  #lease: bigint | undefined;
  /** True when the key was written with this lease. */
  #written = false;
  #renewedMs = Number.NEGATIVE_INFINITY;
  #waiting: (() => void)[] = [];
  #was = false;
  /** The reason why the last attempt failed; each reason is reported once. */
  #trouble = '';
  #closed: Promise<void> | undefined;

  constructor(server: Registrable, options: Resolved) {
    const service = checkedService('register', options.service);
    const entry = checkedEntry(options);
    this.#entry = entryOf(service, entry);
    this.#name = `${service}/${entry.address}`;
    this.#options = options;
    // A member that hangs must not use up the time to live, because another member may answer.
    const requestMs = Math.min(limits.registryTimeoutMs, options.ttlMs / 2);
    this.#client = new EtcdClient('register', options, requestMs);
    this.#warn = logged(options.log ?? warn);
    this.#running = inRoot(this.#run, this);
    server.onShutdown(() => this.close());
  }

  async ready(): Promise<void> {
    if (!this.#was && !this.#closing.signal.aborted)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (!this.#was) throw new Error(`register ${this.#name}: closed before: ${this.#trouble || 'too early'}`);
  }

  close(): Promise<void> {
    this.#closed ??= inRoot(this.#end, this);
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #end(): Promise<void> {
    this.#closing.abort();
    this.#wake();
    await this.#running;
    await this.#leave(true).catch(() => undefined);
    this.#client.close();
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  get #serving(): boolean {
    const { health } = this.#options;
    return health === undefined || health.statusOf('') === 'SERVING';
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    const backoff = registryBackoff();
    const everyMs = this.#options.ttlMs / limits.renewalsPerTtl;
    while (!signal.aborted) {
      try {
        if (!this.#serving) await this.#leave();
        else {
          this.#lease ??= await this.#granted(signal);
          if (clockMs() - this.#renewedMs >= everyMs) await this.#renew(this.#lease, signal);
        }
        this.#trouble = '';
        backoff.reset();
        // A lost lease is replaced by a new lease at once, because its renewal was due.
        const dueMs = this.#serving ? Math.max(0, this.#renewedMs + everyMs - clockMs()) : everyMs;
        await pause(Math.min(dueMs, limits.healthCheckMs), signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#failed(error);
        await pause(backoff.next(), signal);
      }
    }
  }

  #failed(error: unknown): void {
    if (clockMs() - this.#renewedMs >= this.#options.ttlMs) this.registered = false;
    const trouble = textOf(error);
    if (trouble !== this.#trouble) this.#warn(`register ${this.#name}: ${trouble}; it is tried again`);
    this.#trouble = trouble;
  }

  #granted(signal: AbortSignal): Promise<bigint> {
    const ttl = BigInt(Math.ceil(this.#options.ttlMs / 1000));
    this.#written = false;
    this.#renewedMs = Number.NEGATIVE_INFINITY;
    return this.#client.with(signal, async ({ lease }, options) => {
      const { id, error } = await lease.leaseGrant({ ttl }, options);
      if (error !== '') throw new Error(error);
      return id;
    });
  }

  /**
   * Renews the lease. Writes the key if the key was not written yet, or if another program has deleted it.
   */
  async #renew(id: bigint, signal: AbortSignal): Promise<void> {
    await this.#client.with(signal, async ({ lease, kv }, options) => {
      const sentMs = clockMs();
      let ttl = 0n;
      for await (const renewed of lease.leaseKeepAlive([{ id }], options)) ttl = renewed.ttl;
      if (ttl <= 0n) {
        this.#lease = undefined;
        this.registered = false;
        return;
      }
      const { key } = this.#entry;
      if (!this.#written || (await kv.range({ key, countOnly: true }, options)).count === 0n)
        await kv.put({ ...this.#entry, lease: id }, options);
      this.#written = true;
      this.#renewedMs = sentMs;
      this.registered = true;
    });
    if (!this.registered) return;
    this.#was = true;
    this.#wake();
  }

  /**
   * Deletes the key if it still has this lease. If another process has written the key with its own lease,
   * the key stays. With `forGood`, all members get the request, because no later attempt will follow.
   */
  async #leave(forGood = false): Promise<void> {
    const id = this.#lease;
    if (id === undefined) return;
    const signal = AbortSignal.timeout(limits.registryTimeoutMs);
    const revoke = async ({ lease }: Member, options: CallOptions): Promise<void> => {
      await lease.leaseRevoke({ id }, options).catch((error: RpcError) => {
        // The lease has already expired.
        if (error.code !== Status.NOT_FOUND) throw error;
      });
    };
    await (forGood ? this.#client.withAny(signal, revoke) : this.#client.with(signal, revoke));
    this.#lease = undefined;
    this.registered = false;
  }
}

/**
 * Puts the server into etcd's list of the servers of `service` until its shutdown begins, and again whenever
 * the list has lost it. `address` is the address to which clients connect. A worker group is registered on
 * the main thread, once for all of its workers. Throws for invalid options.
 */
export function register(server: Registrable, options: RegistrationOptions): Registration {
  return new EtcdRegistration(server, checkedOptions<Resolved>('register', options, rules));
}
