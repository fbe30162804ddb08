/**
 * The HTTP port from which Prometheus reads the metrics of a pod. The server and the client use this file.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';
import { metricsPath } from './settings.ts';

/** Listens on all interfaces, and returns the HTTP server and its port. */
export async function serveMetrics(
  registry: Registry,
  port: number,
): Promise<{ http: Server; port: number }> {
  const http = createServer((request, response) => {
    if (request.url !== metricsPath) {
      response.writeHead(404).end();
      return;
    }
    registry.metrics().then(
      (text) => response.writeHead(200, { 'content-type': registry.contentType }).end(text),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  http.listen(port, '0.0.0.0');
  await once(http, 'listening');
  // The port does not keep a process alive that has drained.
  http.unref();
  return { http, port: (http.address() as AddressInfo).port };
}
