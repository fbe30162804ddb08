/**
 * The resolver `endpointSlices(...)`. It lists the EndpointSlices of a service, and then watches for changes
 * from the version of that list. When a watch has ended, it is resumed from the last version that was seen.
 * When that version is too old (410) or a response was invalid, the slices are listed again.
 */
import { readFileSync } from 'node:fs';
import { listedMax } from '../../client/connections/limits.ts';
import type { Resolver } from '../../client/connections/resolver.ts';
import { checkedServers, type ServerAddress } from '../../client/connections/servers.ts';
import { clockMs } from '../../clock.ts';
import { checkedOptions, ownedBy } from '../../core/options.ts';
import * as limits from '../limits.ts';
import { type Follow, watchedResolver } from '../watched.ts';
import { ApiError, get, type Lines, parsed, watch } from './api.ts';
import { type Access, type ApiServerOptions, accessOf } from './credentials.ts';
import { mounted } from './pod.ts';
import { fieldsOf, portsOf, type Slice, serversIn, sliceOf, versionOf } from './slices.ts';

export interface EndpointSlicesOptions extends ApiServerOptions {
  /** The name of the Service. */
  service: string;
  /** The namespace of the Service. Default: the namespace of this pod. */
  namespace?: string;
  /** The name of the port, or the number of the pods' port. Default: the only port of the service. */
  port?: string | number;
  /**
   * Returns other addresses of a pod, which are tried before its own (`doors` of a resolver's addresses).
   * Runs for each pod of each list, whose attributes are `pod` and `node`. While it throws, the channel keeps
   * its addresses as stale ones, and the list is made again after growing pauses. Default: none.
   */
  doors?: (server: ServerAddress) => readonly string[];
  /**
   * Time in ms without any byte, not even a bookmark, after which a watch is started again. Default 90,000,
   * from 100 to 3,600,000.
   */
  silenceMs?: number;
}

interface Resolved extends ApiServerOptions {
  readonly service: string;
  readonly namespace: string;
  readonly port: string | number | undefined;
  readonly doors: EndpointSlicesOptions['doors'];
  readonly silenceMs: number;
}

const name = { kind: 'text', default: '', maxBytes: 253 } as const;
const rules = ownedBy('endpointSlices', {
  service: name,
  namespace: name,
  silenceMs: { kind: 'integer', range: limits.watchSilenceMs },
  doors: { kind: 'function' },
  kubeConfig: { kind: 'source' },
  server: { ...name, maxBytes: 2048 },
  ca: { kind: 'pem' },
  tokenFile: { ...name, maxBytes: 4096 },
});

/** Matches a name of Kubernetes (RFC 1123), which needs no escaping in a path. */
const validName = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

function checkedName(what: string, given: string): string {
  if (validName.test(given)) return given;
  throw new TypeError(`endpointSlices: ${what}: ${JSON.stringify(given)} is no name of Kubernetes`);
}

function checkedPort(port: unknown): string | number | undefined {
  if (port === undefined || (typeof port === 'string' && port !== '')) return port;
  if (Number.isInteger(port) && (port as number) > 0 && (port as number) < 65_536) return port as number;
  throw new RangeError(
    `endpointSlices: port: ${String(port)} is neither a name nor a number from 1 to 65535`,
  );
}

type OnServers = Parameters<Follow>[0];

/** The slices of one service, kept up to date. */
class Slices {
  readonly #access: Access;
  readonly #path: string;
  readonly #selector: string;
  readonly #options: Resolved;
  #slices = new Map<string, Slice>();
  /** The version of the last list, event or bookmark; undefined when the slices must be listed. */
  #version: string | undefined;

  constructor(access: Access, options: Resolved) {
    this.#access = access;
    this.#options = options;
    this.#path = `/apis/discovery.k8s.io/v1/namespaces/${options.namespace}/endpointslices`;
    this.#selector = `kubernetes.io/service-name=${options.service}`;
  }

  follow: Follow = async (onServers, signal) => {
    if (this.#version === undefined) {
      this.#version = await this.#list(signal);
      onServers(this.#servers);
      await this.#watch(() => undefined, onServers, signal);
    }
    // The slices are known to be current once the watch has begun.
    const begun = (): void => onServers(this.#servers);
    for (;;) await this.#watch(begun, onServers, signal);
  };

  /** Returns the version of the list. */
  async #list(signal: AbortSignal): Promise<string> {
    const slices = new Map<string, Slice>();
    let next = '';
    for (let page = 0; page < limits.listPagesMax; ++page) {
      const query = new URLSearchParams({ labelSelector: this.#selector, limit: String(limits.listPage) });
      if (next !== '') query.set('continue', next);
      const list = await get(this.#access, `${this.#path}?${query}`, signal);
      if (!Array.isArray(list.items)) throw new Error('the API server sent no list of EndpointSlices');
      for (const item of list.items) {
        const slice = sliceOf(fieldsOf(item));
        slices.set(slice.name, slice);
      }
      const { continue: more } = fieldsOf(list.metadata);
      if (typeof more === 'string' && more !== '') next = more;
      else {
        this.#slices = slices;
        return versionOf(list);
      }
    }
    throw new Error(`the list of EndpointSlices has more than ${limits.listPagesMax} pages`);
  }

  /** Resolves when the API server ends the watch after its normal time. */
  async #watch(begun: () => void, onServers: OnServers, signal: AbortSignal): Promise<void> {
    const { mean, jitter } = limits.watchSeconds;
    const seconds = Math.round(mean * (1 - jitter + 2 * jitter * Math.random()));
    const query = new URLSearchParams({
      watch: '1',
      allowWatchBookmarks: 'true',
      labelSelector: this.#selector,
      resourceVersion: this.#version ?? '',
      timeoutSeconds: String(seconds),
    });
    const beganMs = clockMs();
    let lines: Lines | undefined;
    try {
      lines = await watch(this.#access, `${this.#path}?${query}`, this.#options.silenceMs, signal);
      begun();
      for await (const line of lines) if (this.#take(line)) onServers(this.#servers);
    } catch (error) {
      if (error instanceof ApiError ? error.status === 410 : error instanceof BadEvent)
        this.#version = undefined;
      throw error;
    } finally {
      lines?.destroy();
    }
    // The loop waits between watches, because otherwise a server that ends each watch at once would get
    // requests without end.
    if (clockMs() - beganMs < limits.registryPauseMs.max)
      throw new Error('the API server ended the watch as soon as it had begun');
  }

  /** Returns true when the slices have changed. */
  #take(line: string): boolean {
    try {
      const { type, object } = parsed(line);
      const given = fieldsOf(object);
      if (type === 'ERROR') throw new ApiError(Number(given.code), String(given.message));
      this.#version = versionOf(given);
      if (type === 'BOOKMARK') return false;
      const slice = sliceOf(given);
      if (type === 'DELETED') this.#slices.delete(slice.name);
      else if (type === 'ADDED' || type === 'MODIFIED') this.#slices.set(slice.name, slice);
      else throw new Error(`the API server sent an event of the type ${String(type)}`);
      return true;
    } catch (cause) {
      throw new BadEvent((cause as Error).message, { cause });
    }
  }

  readonly #servers = (): ReturnType<typeof serversIn> => {
    const slices = [...this.#slices.values()];
    const { port, service } = this.#options;
    const servers = serversIn(slices, port, listedMax);
    if (servers.length > listedMax)
      throw new RangeError(
        `the service ${service} has more than ${listedMax} endpoints, the limit of a list`,
      );
    const some = slices.some(({ endpoints }) => endpoints.some(({ serving }) => serving));
    if (servers.length === 0 && some) {
      const wanted = port === undefined ? 'several ports; give the option port' : `no port ${port}`;
      throw new Error(`the service ${service} has ${wanted}: ${portsOf(slices)}`);
    }
    const { doors } = this.#options;
    if (doors === undefined) return servers;
    const listed = servers.map((server) => ({ ...server, doors: doors(server) }));
    return checkedServers('endpointSlices', listed, listedMax);
  };
}

/** After this event the known slices are no longer valid. */
class BadEvent extends Error {}

/**
 * Returns a resolver for `createChannel`. It finds the pods that serve a Kubernetes Service by its
 * EndpointSlices, and applies changes as they happen. Each address has the zone of the pod, and the
 * attributes `pod` and `node`. The service account needs the verbs list and watch on `endpointslices` of the
 * group `discovery.k8s.io`. Throws for invalid options, and when the API server is not known.
 */
export function endpointSlices(options: EndpointSlicesOptions): Resolver {
  const { port, ...others } = options ?? {};
  const checked = checkedOptions<Resolved>('endpointSlices', others, rules);
  const service = checkedName('service', checked.service);
  const namespace = checkedName(
    'namespace',
    checked.namespace || readFileSync(mounted.namespace, 'utf8').trim(),
  );
  const resolved: Resolved = { ...checked, service, namespace, port: checkedPort(port) };
  const access = accessOf('endpointSlices', {
    ...checked,
    server: checked.server || undefined,
    tokenFile: checked.tokenFile || undefined,
  } as ApiServerOptions);
  return watchedResolver(() => new Slices(access, resolved).follow);
}
