/**
 * `rdma-rpc/health`: the standard health service, grpc.health.v1. A server is SERVING while it runs, and
 * NOT_SERVING while it shuts down. The application sets the status of its services.
 */

import type { HealthCheck } from '../core/health-check.ts';
import type { Server } from '../server/server-type.ts';
import {
  HealthCheckResponse_ServingStatus as Code,
  type HealthCheckResponse,
  HealthDefinition,
} from './gen/grpc/health/v1/health.rdma.ts';
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

/**
 * Returns a health check for the option `healthCheck` of createChannel. The channel then makes calls only to
 * servers that report SERVING for `service`, a full name. The default is the service that the service
 * configuration names, or the server as a whole. Servers without a health service take calls, too.
 */
export function healthCheck(service = ''): HealthCheck {
  if (typeof service !== 'string') throw new TypeError('healthCheck: the name of a service is a text');
  return {
    method: HealthDefinition.methods.watch,
    request: { service },
    serves: (response) => (response as HealthCheckResponse).status === Code.SERVING,
    ...(service === '' && { named: healthCheck }),
  };
}
