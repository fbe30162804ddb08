/**
 * The source of a server's status for health-http.ts: a Health, or any other object, such as one on the main
 * thread of several workers.
 */

export type ServingStatus = 'SERVING' | 'NOT_SERVING' | 'UNKNOWN';

export interface HealthSource {
  /** `service` is empty for the server as a whole. Returns undefined for an unknown service. */
  statusOf(service: string): ServingStatus | undefined;
}

/** The status of a server and its services, as returned by addHealth(). */
export interface Health extends HealthSource {
  /**
   * Sets the status that the service reports for `service` from now on (a full name; empty for the server as
   * a whole, which does not affect the others). Services of the server are SERVING until this is called;
   * other names are allowed, too. Everything is NOT_SERVING once the server is shutting down.
   */
  setStatus(service: string, status: ServingStatus): this;
  /** Returns undefined for a service that the server does not have. */
  statusOf(service: string): ServingStatus | undefined;
  /** Number of open Watch calls. */
  readonly watchers: number;
}
