/**
 * The parts of a health check, with which a channel asks its servers whether they serve: a streaming method,
 * its request, and the meaning of its answers. `healthCheck()` of `rdma-rpc/health` makes this object, so
 * that other channels need no code of that service.
 */
import type { MethodDefinition } from '../codec/types.ts';

export interface HealthCheck {
  /** A method with one request and a stream of responses, one for each change. */
  readonly method: MethodDefinition;
  readonly request: unknown;
  /** Returns whether the server takes calls, by the last response. */
  serves(response: unknown): boolean;
  /**
   * Returns the same check for a service that a service configuration names. It is undefined when the
   * application has named a service.
   */
  named?(service: string): HealthCheck;
}
