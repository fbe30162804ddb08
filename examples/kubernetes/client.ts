/**
 * The program of the client's pods: finds the servers by their EndpointSlices, calls one each 100 ms, and
 * exports what it sees of them. `node dist/examples/kubernetes/client.js`.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { createChannel, createClient } from 'rdma-rpc';
import { healthCheck } from 'rdma-rpc/health';
import { endpointSlices } from 'rdma-rpc/kubernetes';
import { collectNativeStats, prometheus } from 'rdma-rpc/prometheus';
import { collectChannel } from '../dashboard/fleet.ts';
import { GreeterDefinition } from '../hello/gen/greeter.rdma.ts';
import { serveMetrics } from './metrics.ts';
import { ports, service } from './settings.ts';

const { POD_NAME: name = '', ZONE: zone = '' } = process.env;
const registry = new Registry();
collectNativeStats(registry);
const channel = createChannel(endpointSlices(service), {
  log: console.error,
  interceptors: [prometheus({ registry })],
  healthCheck: healthCheck(GreeterDefinition.fullName),
  // A pod of a StatefulSet keeps its name, and with it its ten servers, when it is started again.
  ...(name !== '' && { subset: { size: 10, clientId: name } }),
  ...(zone !== '' && { zone }),
});
collectChannel(channel, service.service, registry);
const greeter = createClient(GreeterDefinition, channel, {
  sayHello: { timeoutMs: 5_000, waitForReady: true, idempotent: true, retry: { attemptsMax: 3 } },
});
await serveMetrics(registry, ports.metrics);

const ending = new AbortController();
process.once('SIGTERM', () => ending.abort());
while (!ending.signal.aborted) {
  const answer = await greeter.sayHello({ name: name || 'client' }).catch(String);
  console.log(typeof answer === 'string' ? answer : answer.text);
  await pause(100, undefined, { signal: ending.signal }).catch(() => undefined);
}
await channel.close();
process.exit(0);
