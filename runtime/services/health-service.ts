/**
 * The handlers of grpc.health.v1, and the statuses that the application has set. The function addHealth()
 * creates it, on the server's JS thread.
 */

import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import type { HandlerContext } from '../core/handler-context.ts';
import type { Server } from '../server/server-type.ts';
import {
  HealthCheckResponse_ServingStatus as Code,
  type HealthCheckRequest,
  type HealthCheckResponseInit,
  type HealthListResponseInit,
} from './gen/grpc/health/v1/health.rdma.ts';
import type { Health, ServingStatus } from './health-source.ts';

const shuttingDown = 'the server is shutting down';

export class HealthService implements Health {
  readonly #server: Server;
  readonly #statuses = new Map<string, ServingStatus>();
  /** Functions that wake the watchers that wait for a change. */
  readonly #waiting = new Set<() => void>();

  constructor(server: Server) {
    this.#server = server;
    server.onShutdown(() => this.#changed());
  }

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

  statusOf(service: string): ServingStatus | undefined {
    const known = this.#statuses.get(service) ?? (this.#names().includes(service) ? 'SERVING' : undefined);
    return known !== undefined && this.#server.stopping ? 'NOT_SERVING' : known;
  }

  get watchers(): number {
    return this.#waiting.size;
  }

  check({ service }: HealthCheckRequest): HealthCheckResponseInit {
    const status = this.statusOf(service);
    if (status === undefined) throw new RpcError(Status.NOT_FOUND, `unknown service ${service}`);
    return { status: Code[status] };
  }

  list(): HealthListResponseInit {
    const names = new Set([...this.#names(), ...this.#statuses.keys()]);
    const entries = [...names].map((name) => [name, { status: Code[this.statusOf(name) ?? 'UNKNOWN'] }]);
    return { statuses: Object.fromEntries(entries) };
  }

  /**
   * Streams the status of a service. When the server shuts down, a watch gets the final status and ends,
   * because an open watch would delay the shutdown.
   */
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

  /** Resolves at the next change, or at the end of the call. */
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
