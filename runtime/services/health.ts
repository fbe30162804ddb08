/**
 * `rdma-rpc/health`: the standard health service, grpc.health.v1. A running server is SERVING, one that is
 * shutting down is not; the application sets the status of its services.
 */

import type { Server } from '../server/server-type.ts';
import { HealthDefinition } from './gen/grpc/health/v1/health.rdma.ts';
import { HealthService } from './health-service.ts';
import type { Health } from './health-source.ts';

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
export type { Health, HealthSource, ServingStatus } from './health-source.ts';

/** Adds the health service to a server. Throws when it has been added already. */
export function addHealth(server: Server): Health {
  const health = new HealthService(server);
  server.add(HealthDefinition, health);
  return health;
}
