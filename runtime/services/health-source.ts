/**
 * Who knows how a server does: a Health, or anything else, such as the main thread of several workers. What
 * health-http.ts asks.
 */

export type ServingStatus = 'SERVING' | 'NOT_SERVING' | 'UNKNOWN';

export interface HealthSource {
  /** `service` is empty for the whole. Undefined: there is no such service. */
  statusOf(service: string): ServingStatus | undefined;
}

/** What a server says of itself and its services: what healthOf() gives. */
export interface Health extends HealthSource {
  /**
   * What the service answers for `service` (full name; empty: the server as a whole, which says nothing about
   * the others) from now on. Services of the server are SERVING until this says otherwise; any other name may
   * be used too. Everything is NOT_SERVING once the server is shutting down.
   */
  setStatus(service: string, status: ServingStatus): this;
  /** Undefined for a service that the server does not have. */
  statusOf(service: string): ServingStatus | undefined;
  /** Calls of Watch that are open now. */
  readonly watchers: number;
}
