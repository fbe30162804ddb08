/**
 * The resolver `etcd(...)`. It lists the servers of a service, and then watches for changes from the revision
 * of that list. When the watch ends for any reason, the resolver lists the servers again instead of resuming
 * from the last revision. etcd may have compacted that revision, or may have been restarted with an older
 * store, which would never reach the revision.
 */

import type { Resolver } from '../../client/connections/resolver.ts';
import type { Server } from '../../client/connections/servers.ts';
import { clockMs } from '../../clock.ts';
import { type Log, logged, warn } from '../../core/log.ts';
import { checkedOptions, ownedBy } from '../../core/options.ts';
import type { CallOptions } from '../../core/types.ts';
import type { Warn } from '../../core/warnings.ts';
import { etcdSilenceMs } from '../limits.ts';
import { type Follow, pause, watchedResolver } from '../watched.ts';
import { rangeOf, serverOf } from './entries.ts';
import { EtcdClient, type Member } from './etcd-client.ts';
import { Event_EventType, type WatchRequestInit, type WatchResponse } from './gen/rpc.rdma.ts';
import { checkedService, type EtcdOptions, etcdRules, type ResolvedEtcdOptions } from './options.ts';

export interface EtcdResolverOptions extends EtcdOptions {
  /** The name of the service. Each key that begins with the name and a slash is a server. */
  service: string;
  /**
   * Receives a line for each value in etcd that does not describe a server. Default: a warning of the
   * process.
   */
  log?: Log;
}

interface Resolved extends ResolvedEtcdOptions {
  readonly service: string;
  readonly log: Log | undefined;
}

const rules = ownedBy('etcd', {
  ...etcdRules,
  service: { kind: 'text', default: '', maxBytes: 4096 },
  log: { kind: 'function' },
});

/** The servers, by key. */
class Entries {
  readonly #service: string;
  readonly #warn: Warn;
  readonly #servers = new Map<string, Server>();

  constructor(service: string, report: Warn) {
    this.#service = service;
    this.#warn = report;
  }

  put(key: Uint8Array, value: Uint8Array): void {
    const name = Buffer.from(key).toString();
    const server = serverOf(value);
    if (server !== undefined) this.#servers.set(name, server);
    else {
      this.#servers.delete(name);
      this.#warn(`etcd: ${this.#service}: the value of the key ${JSON.stringify(name)} names no server`);
    }
  }

  delete(key: Uint8Array): void {
    this.#servers.delete(Buffer.from(key).toString());
  }

  get list(): readonly Server[] {
    return [...this.#servers.values()];
  }
}

/** Applies the changes of a response. Throws when the watch has ended. */
function take(entries: Entries, response: WatchResponse): void {
  const { canceled, compactRevision, cancelReason, events } = response;
  if (compactRevision !== 0n)
    throw new Error('the revision of the watch was compacted, so the servers are listed again');
  if (canceled) throw new Error(`etcd ended the watch: ${cancelReason || 'it gave no reason'}`);
  for (const { type, kv } of events) {
    if (kv === undefined) continue;
    if (type === Event_EventType.DELETE) entries.delete(kv.key);
    else entries.put(kv.key, kv.value);
  }
}

/** Watches until the stream ends or is silent for too long, and rejects with the reason. */
async function watchFrom(
  member: Member,
  options: CallOptions,
  range: ReturnType<typeof rangeOf>,
  startRevision: bigint,
  onResponse: (response: WatchResponse) => void,
): Promise<never> {
  const end = new AbortController();
  const signal = AbortSignal.any([options.signal!, end.signal]);
  let heardMs = clockMs();
  async function* requests(): AsyncGenerator<WatchRequestInit> {
    const value = { ...range, startRevision, fragment: true };
    yield { requestUnion: { case: 'createRequest', value } };
    for (;;) {
      await pause(etcdSilenceMs.ask, signal);
      if (signal.aborted) return;
      if (clockMs() - heardMs > etcdSilenceMs.max)
        end.abort(new Error(`etcd was silent for ${etcdSilenceMs.max} ms`));
      else yield { requestUnion: { case: 'progressRequest', value: {} } };
    }
  }
  // Without this option, a member that has lost its leader would send no changes. With the option, such a
  // member ends the watch.
  const metadata = { ...(options.metadata as object), hasleader: 'true' };
  try {
    for await (const response of member.watch.watch(requests(), { signal, metadata })) {
      heardMs = clockMs();
      onResponse(response);
    }
    throw new Error('etcd ended the watch');
  } catch (error) {
    throw end.signal.aborted ? end.signal.reason : error;
  } finally {
    end.abort();
  }
}

const follow =
  (client: EtcdClient, service: string, report: Warn): Follow =>
  (onServers, signal) =>
    client.with(signal, async (member, options) => {
      const range = rangeOf(service);
      const entries = new Entries(service, report);
      const { header, kvs } = await member.kv.range(range, options);
      for (const { key, value } of kvs) entries.put(key, value);
      const changed = (): void => {
        const { list } = entries;
        onServers(() => list);
      };
      changed();
      return watchFrom(member, options, range, (header?.revision ?? 0n) + 1n, (response) => {
        take(entries, response);
        // A revision may come in several responses, and is applied when all of them have arrived.
        if (response.events.length > 0 && !response.fragment) changed();
      });
    });

/**
 * Returns a resolver for `createChannel`. It finds the servers that are registered in etcd for `service` by
 * `register` of this package or by the Go package naming/endpoints. Changes are applied at once. Changes of
 * long lists are applied after a pause of at most half a second. A resolver keeps the process alive until its
 * channels are closed. Throws for invalid options.
 */
export function etcd(options: EtcdResolverOptions): Resolver {
  const checked = checkedOptions<Resolved>('etcd', options, rules);
  const service = checkedService('etcd', checked.service);
  const client = new EtcdClient('etcd', checked);
  return watchedResolver(() => follow(client, service, logged(checked.log ?? warn)));
}
