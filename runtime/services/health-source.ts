/** Who knows how a server does: a Health, or anything else, such as the main thread of several workers. What health-http.ts asks. */

export type ServingStatus = 'SERVING' | 'NOT_SERVING' | 'UNKNOWN';

export interface HealthSource {
  /** `service` is empty for the whole. Undefined: there is no such service. */
  statusOf(service: string): ServingStatus | undefined;
}
