/** `--metrics` of `rdma-rpc tunnel`: the counts of an end in the text form of Prometheus, over HTTP. */
import { createServer, type Server } from 'node:http';
import { formatAddress, parseAddress } from '../../runtime/control/socket/address.ts';
import type { RelayCounts } from './counts.ts';
import { warn } from './program-side.ts';

/**
 * Connections to `--metrics` at a time. Further ones are closed, so that they do not take the file
 * descriptors that the connections of programs need.
 */
export const metricsConnectionsMax = 64;

const rows: readonly (readonly [keyof RelayCounts, string, 'counter' | 'gauge', string])[] = [
  ['open', 'connections_open', 'gauge', 'Connections that are open'],
  ['accepted', 'connections_total', 'counter', 'Connections that have come'],
  ['refused', 'connections_refused_total', 'counter', 'Connections that could not be made to the other side'],
  ['broken', 'connections_broken_total', 'counter', 'Connections that ended with an error'],
  ['sentBytes', 'sent_bytes_total', 'counter', 'Bytes from programs of this side into the tunnel'],
  ['receivedBytes', 'received_bytes_total', 'counter', 'Bytes from the tunnel to programs of this side'],
];

function metricsText(counts: Readonly<RelayCounts>): string {
  return rows
    .map(([key, name, type, help]) => {
      const full = `rdma_rpc_tunnel_${name}`;
      return `# HELP ${full} ${help}\n# TYPE ${full} ${type}\n${full} ${counts[key]}\n`;
    })
    .join('');
}

/**
 * Serves `/metrics` on `host:port`. Resolves with the server and its address; rejects when it cannot listen.
 */
export function serveMetrics(
  address: string,
  counts: Readonly<RelayCounts>,
): Promise<{ readonly server: Server; readonly bound: string }> {
  const parsed = parseAddress(address);
  if (parsed.kind === 'unix') throw new TypeError('--metrics: give host:port');
  const server = createServer((request, response) => {
    const found = request.url === '/metrics';
    response.writeHead(found ? 200 : 404, { 'content-type': 'text/plain; version=0.0.4' });
    response.end(found ? metricsText(counts) : 'not found; see /metrics\n');
  });
  server.maxConnections = metricsConnectionsMax;
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: parsed.host, port: parsed.port }, () => {
      server.off('error', reject);
      server.on('error', warn);
      server.unref();
      const { port } = server.address() as { port: number };
      resolve({ server, bound: formatAddress({ ...parsed, port }) });
    });
  });
}
