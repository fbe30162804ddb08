/**
 * `rdma-rpc/health`: the standard health service, grpc.health.v1. A server is SERVING while it runs, and
 * NOT_SERVING while it shuts down. The application sets the status of its services.
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

/** Adds the health service to a server. Throws when the service has already been added. */
export function addHealth(server: Server): Health {
  const health = new HealthService(server);
  server.add(HealthDefinition, health);
  return health;
}
