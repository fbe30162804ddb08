/**
 * Makes the objects of a client's pod: a channel to the pods of the Service, and its metrics. client.ts uses
 * this file.
 */
import type { Registry } from 'prom-client';
import { type Channel, createChannel, createClient, type Resolver } from 'rdma-rpc';
import { healthCheck } from 'rdma-rpc/health';
import { collectNativeStats, prometheus } from 'rdma-rpc/prometheus';
import { collectChannel } from '../dashboard/fleet.ts';
import { type GreeterClient, GreeterDefinition } from '../hello/gen/greeter.rdma.ts';
import { service } from './settings.ts';

export interface Caller {
  readonly channel: Channel;
  readonly greeter: GreeterClient;
}

/** Creates a caller with its channel. `name` and `zone` are those of the pod, '' when they are not known. */
export function callerOf(resolver: Resolver, name: string, zone: string, registry: Registry): Caller {
  collectNativeStats(registry);
  const channel = createChannel(resolver, {
    log: console.error,
    interceptors: [prometheus({ registry })],
    healthCheck: healthCheck(GreeterDefinition.fullName),
    // A pod of a StatefulSet keeps its name when it is started again, and therefore also its ten servers.
    ...(name !== '' && { subset: { size: 10, clientId: name } }),
    ...(zone !== '' && { zone }),
  });
  collectChannel(channel, service.service, registry);
  const greeter = createClient(GreeterDefinition, channel, {
    sayHello: { timeoutMs: 5_000, waitForReady: true, idempotent: true, retry: { attemptsMax: 3 } },
  });
  return { channel, greeter };
}
