/**
 * Health checks of the servers of a channel, as in gRPC (A17). Each connection has a stream on which the
 * server reports whether it serves. The connection takes calls while the last report is SERVING. A server
 * without a health service counts as serving. When the stream fails, the connection takes no calls until a
 * new stream reports SERVING. The connections of a channel own this object and use it on their JS thread.
 */
import { unavailable } from '../../core/errors/failure.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import type { HealthCheck } from '../../core/health-check.ts';
import { inRoot } from '../../core/scopes.ts';
import { type ClientMethod, clientMethod } from '../call/client-method.ts';
import { CallExtras } from '../session/call-extras.ts';
import { ClientStream, type StreamHost } from '../stream/client-stream.ts';
import { Backoff } from './backoff.ts';
import type { ClientLink } from './client-link.ts';

/** Opens the streams of a health check on one connection, or refuses them when no stream slot is free. */
class LinkHost implements StreamHost {
  readonly tallied = false;
  readonly #link: ClientLink;

  constructor(link: ClientLink) {
    this.#link = link;
  }

  startStream(stream: ClientStream): void {
    if (!stream.open(this.#link.streams))
      stream.refuse(unavailable(`${stream.method.path}: no free stream slot on the connection`));
  }

  forgetStream(): void {}
}

class HealthWatch {
  /** Whether the server serves; undefined until its first answer. */
  serves: boolean | undefined;
  readonly #link: ClientLink;
  readonly #check: HealthCheck;
  readonly #method: ClientMethod;
  readonly #backoff: Backoff;
  readonly #onChange: () => void;
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;

  constructor(
    link: ClientLink,
    check: HealthCheck,
    method: ClientMethod,
    backoff: Backoff,
    onChange: () => void,
  ) {
    this.#link = link;
    this.#check = check;
    this.#method = method;
    this.#backoff = backoff;
    this.#onChange = onChange;
    this.#begin();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#stop.abort();
  }

  #begin(): void {
    // Use the root context, because the stream serves all callers.
    inRoot(() => void this.#read());
  }

  async #read(): Promise<void> {
    const { signal } = this.#stop;
    const extras = new CallExtras({ signal }, undefined, true);
    const { request } = this.#check;
    const stream = new ClientStream(new LinkHost(this.#link), this.#method, request, -1, extras, undefined);
    // Two watches of a connection overlap when a service configuration names another service.
    ++this.#link.ownCalls;
    let missing = false;
    try {
      for await (const response of stream.reader) {
        this.#backoff.reset();
        this.#set(this.#check.serves(response));
      }
    } catch (error) {
      missing = error instanceof RpcError && error.code === Status.UNIMPLEMENTED;
    }
    --this.#link.ownCalls;
    if (signal.aborted) return;
    this.#set(missing);
    if (!missing) this.#timer = setTimeout(() => this.#begin(), this.#backoff.next()).unref();
  }

  #set(serves: boolean): void {
    if (this.#stop.signal.aborted || this.serves === serves) return;
    this.serves = serves;
    this.#onChange();
  }
}

export interface HealthSettings {
  readonly healthCheck?: HealthCheck;
  readonly backoffMs: number;
  readonly backoffMaxMs: number;
}

export class HealthWatches {
  readonly #given: HealthCheck;
  #check: HealthCheck;
  #service: string | undefined;
  readonly #method: ClientMethod;
  readonly #settings: HealthSettings;
  readonly #onChange: () => void;
  readonly #watches = new Map<ClientLink, HealthWatch>();

  /** Throws a TypeError when `check` is not a result of `healthCheck()`. */
  constructor(check: HealthCheck, settings: HealthSettings, onChange: () => void) {
    if (typeof check?.serves !== 'function' || check.method?.responseStream !== true)
      throw new TypeError('createChannel: healthCheck: give what healthCheck() of rdma-rpc/health returns');
    this.#given = check;
    this.#check = check;
    this.#method = clientMethod(check.method, -1);
    this.#settings = settings;
    this.#onChange = onChange;
  }

  /**
   * Asks for the health of the service that a service configuration names, unless the application has named
   * one.
   */
  ask(service: string | undefined): void {
    if (service === this.#service) return;
    this.#service = service;
    this.#check = (service === undefined ? undefined : this.#given.named?.(service)) ?? this.#given;
    if (this.#watches.size === 0) return;
    this.sync([]);
    this.#onChange();
  }

  /** Watches these connections, and stops watching all others. */
  sync(links: readonly ClientLink[]): void {
    const current = new Set(links);
    for (const [link, watch] of this.#watches)
      if (!current.has(link)) {
        this.#watches.delete(link);
        watch.stop();
      }
    const { backoffMs, backoffMaxMs } = this.#settings;
    for (const link of current) {
      if (this.#watches.has(link)) continue;
      const backoff = new Backoff(backoffMs, backoffMaxMs);
      const watch = new HealthWatch(link, this.#check, this.#method, backoff, this.#onChange);
      this.#watches.set(link, watch);
    }
  }

  /** Returns whether the server of a connection serves, or undefined until its first answer. */
  serves(link: ClientLink): boolean | undefined {
    return this.#watches.get(link)?.serves;
  }

  /** True while a server has not answered yet. */
  get pending(): boolean {
    for (const { serves } of this.#watches.values()) if (serves === undefined) return true;
    return false;
  }

  /** The error for calls when no server is healthy; undefined when health is not the reason. */
  get error(): RpcError | undefined {
    if (this.#watches.size === 0) return undefined;
    return unavailable(`the health service of ${this.#watches.size} connected server(s) says NOT_SERVING`);
  }

  stop(): void {
    this.sync([]);
  }
}
