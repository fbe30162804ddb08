/**
 * The public interface of the servers that createServer() returns. The class that implements it is in
 * server.ts.
 */
import type { ServiceDefinition } from '../codec/types.ts';
import type { SessionSummary } from '../control/session-summary.ts';
import type { Interceptor } from '../core/interceptor.ts';
import type { Handlers } from '../core/types.ts';

/** Handlers of services, and the addresses on which they are served. */
export interface Server extends AsyncDisposable {
  /**
   * Serves the methods of `definition` for which `handlers` (an object or class instance) has a function. The
   * other methods answer UNIMPLEMENTED. Throws if the service was added before, or if one of its method ids
   * is already in use.
   */
  add<D extends ServiceDefinition>(definition: D, handlers: Partial<Handlers<D>>): this;
  /**
   * Adds interceptors around all services. The first interceptor is the outermost. Throws when a service has
   * already been added, because that service would not have these interceptors.
   */
  use(...interceptors: Interceptor[]): this;
  /**
   * Returns an object to which services can be added that have these interceptors, inside the interceptors of
   * the server.
   */
  scope(...interceptors: Interceptor[]): ServiceScope;
  /**
   * Listens on `host:port` (port 0 for any free port), `[ipv6]:port` or `unix:/path`. The method may be
   * called several times. Resolves with the bound address in the form that clients use. Rejects when the
   * address is in use or no fabric can be opened.
   */
  listen(address: string): Promise<string>;
  /**
   * Stops accepting connections, tells clients to send no more calls, and lets calls in flight finish for
   * `graceMs` (default 5000). Then it ends the remaining calls: it aborts the signals of their handlers, and
   * their callers get UNAVAILABLE. Always resolves, at the latest shortly after the grace period.
   */
  shutdown(options?: { graceMs?: number }): Promise<void>;
  /**
   * Calls `listener` when shutdown() begins, while calls in flight are still running. If shutdown() has
   * already begun, calls it at once. Promises that listeners return are awaited for at most a second of the
   * grace period, before clients are notified. Until then, the server serves as before, so that it can leave
   * a list of servers first.
   */
  onShutdown(listener: () => unknown): void;
  /** True after shutdown() was called. */
  readonly stopping: boolean;
  /** The added services, in order. */
  readonly services: readonly ServiceDefinition[];
  /** Number of open sessions. */
  readonly sessionCount: number;
  /** The open sessions, oldest first. */
  readonly sessions: readonly SessionSummary[];
}

/** Services of a server that share interceptors: the result of `server.scope(...)`. */
export interface ServiceScope {
  /**
   * Adds a service as `server.add` does. The service has the interceptors of the server and, inside them, the
   * interceptors of this scope.
   */
  add<D extends ServiceDefinition>(definition: D, handlers: Partial<Handlers<D>>): this;
  /** Returns a scope with further interceptors, inside the interceptors of this scope. */
  scope(...interceptors: Interceptor[]): ServiceScope;
}
