/**
 * Tests that the client of examples/kubernetes finds the server of the manifests through an API server, and
 * calls it.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { endpointSlices } from 'rdma-rpc/kubernetes';
import { expect, test } from 'vitest';
import { callerOf } from '../../../examples/kubernetes/caller.ts';
import { serveGreeter } from '../../../examples/kubernetes/greeter.ts';
import { service } from '../../../examples/kubernetes/settings.ts';
import { ApiServer } from '../../discovery/api-server.ts';
import { ends } from '../../security/ends.ts';

test('a slice with the ports of the Service leads to the server', async () => {
  const running = await serveGreeter({ rpc: 0, probes: 0, metrics: 0 });
  const api = await new ApiServer().start();
  const ports = [
    { name: 'metrics', port: running.metrics },
    { name: 'rpc', port: Number(running.address.split(':').at(-1)) },
  ];
  api.set({ name: 'one', endpoints: [{ address: '127.0.0.1', zone: 'z1' }], ports });
  const tokenFile = join(ends.folder, 'kubernetes-client-token');
  writeFileSync(tokenFile, api.token);

  const registry = new Registry();
  const found = endpointSlices({
    ...service,
    namespace: 'shop',
    server: api.url,
    ca: api.authority.ca,
    tokenFile,
  });
  const { channel, greeter } = callerOf(found, 'greeter-client-0', 'z1', registry);
  expect((await greeter.sayHello({ name: 'Ada' })).text).toMatch(/^Hello Ada, from /);
  expect(await registry.metrics()).toContain(
    'rdma_rpc_channel_addresses{channel="greeter",zone="z1",state="ready",stale="false"} 1',
  );
  await channel.close();
  await api.stop();
  await running.drain();
  await running.close();
});
