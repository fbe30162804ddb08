/**
 * Health over plain HTTP on a separate port, for probes that need it (Kubernetes, load balancers). `/healthz`
 * reports that the process is alive, and `/readyz` reports whether it accepts calls.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Silent } from '../control/handshake/silent.ts';
import { disown } from '../core/foreign.ts';
import { checkedOptions, type OptionRules } from '../core/options.ts';
import { inRoot } from '../core/scopes.ts';
import type { HealthSource, ServingStatus } from './health-source.ts';
import { healthHttpConnections, healthHttpTimeoutMs, tcpPort } from './limits.ts';

export interface HealthHttpOptions {
  /** Port to listen on. Default 0, which picks a free port. */
  port?: number;
  /** Address to listen on. Default `127.0.0.1`; use `0.0.0.0` for probes from other hosts. */
  host?: string;
}

export interface HealthHttp {
  /** The bound `host:port`. */
  readonly address: string;
  close(): Promise<void>;
}

const rules: OptionRules = {
  port: { kind: 'integer', range: tcpPort },
  host: { kind: 'text', default: '127.0.0.1', maxBytes: 253 },
};

function answer(health: HealthSource, { method, url = '' }: IncomingMessage): [number, string] {
  if (method !== 'GET' && method !== 'HEAD') return [405, 'use GET'];
  const { pathname, searchParams } = new URL(url, 'http://probe');
  // A process that answers is alive. This is also true for a draining server, because it must not be killed.
  if (pathname === '/healthz') return [200, 'ok'];
  if (pathname !== '/readyz') return [404, 'the paths are /healthz and /readyz?service=NAME'];
  const status = statusOf(health, searchParams.get('service') ?? '');
  if (status === undefined) return [404, 'unknown service'];
  return [status === 'SERVING' ? 200 : 503, status];
}

/**
 * Returns the status of a service, or undefined when the source does not know it. An exception of the source
 * is a mistake of the application, and must not end the process.
 */
function statusOf(health: HealthSource, service: string): ServingStatus | undefined {
  try {
    const status: unknown = disown(inRoot(() => health.statusOf(service)));
    if (status === undefined || status === 'SERVING' || status === 'NOT_SERVING') return status;
  } catch {
    // The status is unknown.
  }
  return 'UNKNOWN';
}

function respond(response: ServerResponse, [code, text]: [number, string]): void {
  response.writeHead(code, {
    'content-type': 'text/plain',
    'cache-control': 'no-store',
    connection: 'close',
  });
  response.end(`${text}\n`);
}

/**
 * Serves health over HTTP. `GET /healthz` is answered with 200. `GET /readyz` and `/readyz?service=NAME` are
 * answered with 200 when the service is SERVING, with 503 when it is not, and with 404 when it is unknown.
 * The port does not keep the process alive. It stays open during `server.shutdown()`, so that probes see the
 * drain; close it afterwards. Rejects when the port is in use.
 */
export async function serveHealthHttp(
  health: HealthSource,
  options: HealthHttpOptions = {},
): Promise<HealthHttp> {
  const { port, host } = checkedOptions<Required<HealthHttpOptions>>('serveHealthHttp', options, rules);
  const limits = {
    headersTimeout: healthHttpTimeoutMs,
    requestTimeout: healthHttpTimeoutMs,
    connectionsCheckingInterval: healthHttpTimeoutMs / 4,
  };
  // The oldest silent connections are closed here. `maxConnections` would reject the newest connections.
  // Peers that send nothing could then keep the probes out, and the orchestrator would consider this process
  // dead.
  const silent = new Silent<Socket>(healthHttpConnections, (socket) => socket.destroy());
  const http = createServer(limits, (request, response) => {
    silent.delete(request.socket);
    request.resume();
    let result: [number, string];
    try {
      result = answer(health, request);
    } catch {
      result = [400, 'not a URL'];
    }
    respond(response, result);
  });
  http.on('connection', (socket: Socket) => {
    silent.add(socket);
    socket.once('close', () => silent.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    http.once('error', reject);
    http.listen(port, host, () => {
      http.off('error', reject);
      resolve();
    });
  });
  http.unref();
  const bound = http.address() as AddressInfo;
  return {
    address: `${bound.family === 'IPv6' ? `[${bound.address}]` : bound.address}:${bound.port}`,
    close: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
}
