/**
 * `rdma-rpc/health`: the standard health service, grpc.health.v1. A server that is up serves; one that is shutting down does not; the application says
 * what it knows of its services.
 */

import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import type { HandlerContext } from '../core/handler-context.ts';
import type { Server } from '../server/server-type.ts';
import {
  HealthCheckResponse_ServingStatus as Code,
  type HealthCheckRequest,
  type HealthCheckResponseInit,
  HealthDefinition,
  type HealthListResponseInit,
} from './gen/grpc/health/v1/health.rdma.ts';
import type { HealthSource, ServingStatus } from './health-source.ts';

export {
  HealthCheckResponse_ServingStatus,
  type HealthClient,
  HealthDefinition,
} from './gen/grpc/health/v1/health.rdma.ts';
export {
  type HealthHttp,
  type HealthHttpOptions,
  serveHealthHttp,
} from './health-http.ts';
export type { HealthSource, ServingStatus } from './health-source.ts';

const shuttingDown = 'the server is shutting down';

export class Health implements HealthSource {
  readonly #server: Server;
  readonly #statuses = new Map<string, ServingStatus>();
  /** Watchers that wait for a change. */
  readonly #waiting = new Set<() => void>();

  /** @internal healthOf() is the way to make one */
  constructor(server: Server) {
    this.#server = server;
    server.onShutdown(() => this.#changed());
  }

  /**
   * What the service answers for `service` (full name; empty: the server as a whole, which says nothing about the others) from now on. Services of the server are SERVING
   * until this says otherwise; any other name may be used too. Everything is NOT_SERVING once the server is shutting down.
   */
  setStatus(service: string, status: ServingStatus): this {
    if (
      typeof service !== 'string' ||
      !Object.hasOwn(Code, status) ||
      (status as string) === 'SERVICE_UNKNOWN'
    ) {
      throw new TypeError(
        `setStatus: ${String(service)}: ${String(status)}; give a service's name and SERVING, NOT_SERVING or UNKNOWN`,
      );
    }
    this.#statuses.set(service, status);
    this.#changed();
    return this;
  }

  /** Undefined for a service that the server does not have. */
  statusOf(service: string): ServingStatus | undefined {
    const known = this.#statuses.get(service) ?? (this.#names().includes(service) ? 'SERVING' : undefined);
    return known !== undefined && this.#server.stopping ? 'NOT_SERVING' : known;
  }

  /** Calls of Watch that are open now. */
  get watchers(): number {
    return this.#waiting.size;
  }

  /** @internal */
  check({ service }: HealthCheckRequest): HealthCheckResponseInit {
    const status = this.statusOf(service);
    if (status === undefined) throw new RpcError(Status.NOT_FOUND, `there is no service ${service}`);
    return { status: Code[status] };
  }

  /** @internal */
  list(): HealthListResponseInit {
    const names = new Set([...this.#names(), ...this.#statuses.keys()]);
    const entries = [...names].map((name) => [name, { status: Code[this.statusOf(name) ?? 'UNKNOWN'] }]);
    return { statuses: Object.fromEntries(entries) };
  }

  /** @internal A watcher would hold up a shutdown for ever, so it is told and ended. */
  async *watch(
    { service }: HealthCheckRequest,
    { signal }: HandlerContext,
  ): AsyncGenerator<HealthCheckResponseInit> {
    let last: string | undefined;
    while (!signal.aborted) {
      const status = this.statusOf(service) ?? 'SERVICE_UNKNOWN';
      if (status !== last) yield { status: Code[status] };
      last = status;
      if (this.#server.stopping) throw new RpcError(Status.UNAVAILABLE, shuttingDown);
      if ((this.statusOf(service) ?? 'SERVICE_UNKNOWN') === last) await this.#change(signal);
    }
  }

  #names(): string[] {
    return ['', ...this.#server.services.map(({ fullName }) => fullName)];
  }

  #changed(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /** The next change, or the end of the call. */
  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener('abort', wake);
      if (signal.aborted) wake();
    });
  }
}

/** Adds the health service to a server. Throws when it has been added already. */
export function healthOf(server: Server): Health {
  const health = new Health(server);
  server.add(HealthDefinition, health);
  return health;
}
