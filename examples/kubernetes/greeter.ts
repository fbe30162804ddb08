/**
 * A server as a pod runs it: calls, probes, metrics and a drain. server.ts is the program. The test starts
 * the same on free ports.
 */
import { hostname } from 'node:os';
import { Registry } from 'prom-client';
import { createServer } from 'rdma-rpc';
import { addHealth, serveHealthHttp } from 'rdma-rpc/health';
import { collectDeviceCounters, collectNativeStats, prometheus } from 'rdma-rpc/prometheus';
import { collectServer, countConnections } from '../dashboard/fleet.ts';
import { GreeterDefinition } from '../hello/gen/greeter.rdma.ts';
import { serveMetrics } from './metrics.ts';
import { graceMs, ports } from './settings.ts';

export interface Running {
  /** The address for calls, and the ports of probes and metrics. */
  readonly address: string;
  readonly probes: number;
  readonly metrics: number;
  /** Finishes the calls in flight. Readiness fails from the beginning of the drain on. */
  drain(): Promise<void>;
  /** Closes the ports of probes and metrics, which stay open while the server drains. */
  close(): Promise<void>;
}

/** Throws when a port is in use, or when no fabric that RDMA_RPC_FABRIC allows can be opened. */
export async function serveGreeter(own: typeof ports = ports): Promise<Running> {
  const registry = new Registry();
  collectNativeStats(registry);
  collectDeviceCounters(registry);
  const server = createServer({ log: console.error, onSession: countConnections(registry) });
  server.use(prometheus({ registry }));
  const health = addHealth(server);
  collectServer(server, { health }, registry);
  server.add(GreeterDefinition, { sayHello: ({ name }) => ({ text: `Hello ${name}, from ${hostname()}` }) });
  const probes = await serveHealthHttp(health, { host: '0.0.0.0', port: own.probes });
  const { http, port } = await serveMetrics(registry, own.metrics);
  const address = await server.listen(`0.0.0.0:${own.rpc}`);
  return {
    address,
    probes: Number(probes.address.split(':').at(-1)),
    metrics: port,
    drain: () => server.shutdown({ graceMs }),
    close: async () => {
      http.close();
      await probes.close();
    },
  };
}
