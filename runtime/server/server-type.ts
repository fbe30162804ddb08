/**
 * A server as applications see it: what createServer() gives. The class behind it, with what takes
 * connections and sessions, is in server.ts.
 */
import type { ServiceDefinition } from '../codec/types.ts';
import type { SessionSummary } from '../control/session-summary.ts';
import type { Interceptor } from '../core/interceptor.ts';
import type { Handlers } from '../core/types.ts';

/** Handlers of services, and the addresses where they are served. */
export interface Server extends AsyncDisposable {
  /**
   * Serves the methods of `definition` that `handlers` (an object or class instance) has; the others answer
   * UNIMPLEMENTED. Throws if the service was added before, or one of its method ids collides.
   */
  add<D extends ServiceDefinition>(definition: D, handlers: Partial<Handlers<D>>): this;
  /**
   * Puts interceptors around all services, the first outermost. Throws when a service has been added already:
   * it would be without them.
   */
  use(...interceptors: Interceptor[]): this;
  /** Where to add services that have these interceptors, inside of those of the server. */
  scope(...interceptors: Interceptor[]): ServiceScope;
  /**
   * Listens on `host:port` (port 0: any free one), `[ipv6]:port` or `unix:/path`; may be called for several.
   * Resolves with the bound address, as a client needs it. Rejects when the address is in use or no fabric
   * can be opened.
   */
  listen(address: string): Promise<string>;
  /**
   * Stops accepting, tells clients to send no more calls, lets those under way finish for `graceMs` (default
   * 5000), then ends what is left: their handlers' signals fire, their callers get UNAVAILABLE. Always
   * resolves, soon after the grace at the latest.
   */
  shutdown(options?: { graceMs?: number }): Promise<void>;
  /**
   * Calls `listener` when shutdown() begins, while calls under way still run; at once if it has begun
   * already.
   */
  onShutdown(listener: () => void): void;
  /** shutdown() has been called. */
  readonly stopping: boolean;
  /** The services that were added, in that order. */
  readonly services: readonly ServiceDefinition[];
  /** Number of sessions that are up. */
  readonly sessionCount: number;
  /** The sessions that are up, oldest first. */
  readonly sessions: readonly SessionSummary[];
}

/** Services of a server that share interceptors: what `server.scope(...)` gives. */
export interface ServiceScope {
  /** As `server.add`, with the interceptors of the server and, inside of them, those of this scope. */
  add<D extends ServiceDefinition>(definition: D, handlers: Partial<Handlers<D>>): this;
  /** A scope with more interceptors, inside of those of this one. */
  scope(...interceptors: Interceptor[]): ServiceScope;
}
