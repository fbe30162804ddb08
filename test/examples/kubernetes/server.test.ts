/**
 * Tests that the server of examples/kubernetes answers the requests of its manifests: probes, metrics, and a
 * drain.
 */
import { createChannel, createClient } from 'rdma-rpc';
import { expect, test } from 'vitest';
import { GreeterDefinition } from '../../../examples/hello/gen/greeter.rdma.ts';
import { serveGreeter } from '../../../examples/kubernetes/greeter.ts';
import { metricsPath } from '../../../examples/kubernetes/settings.ts';
import { servers } from './manifests.ts';

const paths = [
  ...new Set([...JSON.stringify(servers).matchAll(/"httpGet":\{"path":"([^"]+)"/g)].map((m) => m[1]!)),
];

test('probes, metrics and calls are answered, and readiness ends with the drain', async () => {
  const running = await serveGreeter({ rpc: 0, probes: 0, metrics: 0 });
  const probe = async (path: string): Promise<number> =>
    (await fetch(`http://127.0.0.1:${running.probes}${path}`)).status;
  const port = running.address.split(':').at(-1);
  const channel = createChannel(`127.0.0.1:${port}`);
  const { text } = await createClient(GreeterDefinition, channel).sayHello({ name: 'Ada' });
  expect(text).toMatch(/^Hello Ada, from /);
  expect(await Promise.all(paths.map(probe))).toEqual(paths.map(() => 200));

  const metrics = await fetch(`http://127.0.0.1:${running.metrics}${metricsPath}`);
  const body = await metrics.text();
  expect(body).toContain('fleet_server_serving 1');
  expect(body).toMatch(/fleet_server_connections_total\{result="accepted",fabric="\w+"\} 1/);
  expect((await fetch(`http://127.0.0.1:${running.metrics}/`)).status).toBe(404);

  await channel.close();
  await running.drain();
  expect(await probe('/readyz')).toBe(503);
  expect(await probe('/healthz')).toBe(200);
  await running.close();
});
