/**
 * The source of a server's status for health-http.ts. It is a Health or another object, for example on the
 * main thread of a worker group.
 */

export type ServingStatus = 'SERVING' | 'NOT_SERVING' | 'UNKNOWN';

export interface HealthSource {
  /**
   * Returns the status of a service, or undefined for an unknown service. `service` is empty for the server
   * as a whole.
   */
  statusOf(service: string): ServingStatus | undefined;
}

/** The status of a server and its services. The function addHealth() returns it. */
export interface Health extends HealthSource {
  /**
   * Sets the status that the health service reports for `service` from now on. `service` is a full name, or
   * empty for the server as a whole. The status of the server as a whole does not affect its services. A
   * service of the server is SERVING until this method is called for it. Other names are allowed, too. All
   * statuses are NOT_SERVING once the server is shutting down.
   */
  setStatus(service: string, status: ServingStatus): this;
  /** Returns the status, or undefined for a service that the server does not have. */
  statusOf(service: string): ServingStatus | undefined;
  /** Number of open Watch calls. */
  readonly watchers: number;
}
