/** Many connections to `--metrics` must not take the descriptors that the connections of programs need. */
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { newCounts } from '../../../cli/tunnel/counts.ts';
import { metricsConnectionsMax, serveMetrics } from '../../../cli/tunnel/metrics.ts';
import { until } from '../../outcomes.ts';
import { dialTo } from './ends.ts';

test('--metrics has a limited number of connections, and serves again when some have ended', async () => {
  const { server, bound } = await serveMetrics('127.0.0.1:0', newCounts());
  const sockets = Array.from({ length: metricsConnectionsMax + 20 }, () => dialTo(bound).resume());
  await until(() => sockets.filter(({ destroyed }) => destroyed).length === 20);
  for (const socket of sockets) socket.destroy();
  const scrape = (): Promise<string> =>
    fetch(`http://${bound}/metrics`).then((answer) => answer.text(), String);
  await expect.poll(scrape, { timeout: 30_000 }).toContain('connections_open 0');
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});
