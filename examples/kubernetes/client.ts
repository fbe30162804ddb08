/**
 * The program of the client's pods. It finds the servers by their EndpointSlices, calls one of them every 100
 * ms, and exports metrics about the calls. `node dist/examples/kubernetes/client.js`.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { endpointSlices } from 'rdma-rpc/kubernetes';
import { callerOf } from './caller.ts';
import { serveMetrics } from './metrics.ts';
import { ports, service } from './settings.ts';

const { POD_NAME: name = '', ZONE: zone = '' } = process.env;
const registry = new Registry();
const { channel, greeter } = callerOf(endpointSlices(service), name, zone, registry);
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
