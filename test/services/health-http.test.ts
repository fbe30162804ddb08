/**
 * Tests the HTTP port for probes. The tests check the answer for each path, and that no client can block the
 * port.
 */
import { connect, type Socket } from 'node:net';
import { createServer, type Server } from 'rdma-rpc';
import { addHealth, type Health, type HealthHttp, serveHealthHttp } from 'rdma-rpc/health';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { healthHttpConnections } from '../../runtime/services/limits.ts';
import { until } from '../outcomes.ts';

let server: Server;
let health: Health;
let http: HealthHttp;
beforeEach(async () => {
  server = createServer();
  health = addHealth(server).setStatus('database', 'NOT_SERVING').setStatus('cache', 'UNKNOWN');
  http = await serveHealthHttp(health);
});
afterEach(async () => {
  await server.shutdown({ graceMs: 0 });
  await http.close();
});

const ask = (path: string, method = 'GET'): Promise<Response> =>
  fetch(`http://${http.address}${path}`, { method });

test.each([
  ['GET', '/healthz', 200, 'ok\n'],
  ['HEAD', '/healthz', 200, ''],
  ['GET', '/readyz', 200, 'SERVING\n'],
  ['GET', '/readyz?service=grpc.health.v1.Health', 200, 'SERVING\n'],
  ['GET', '/readyz?service=database', 503, 'NOT_SERVING\n'],
  ['GET', '/readyz?service=cache', 503, 'UNKNOWN\n'],
  ['GET', '/readyz?service=nobody', 404, 'unknown service\n'],
  ['GET', '/', 404, 'the paths are /healthz and /readyz?service=NAME\n'],
  ['POST', '/readyz', 405, 'use GET\n'],
])('%s %s: %d', async (method, path, code, text) => {
  const response = await ask(path, method);
  expect([response.status, await response.text()]).toEqual([code, text]);
  expect(response.headers.get('cache-control')).toBe('no-store');
});

test('while the server drains it is alive, but not ready', async () => {
  await server.shutdown();
  expect((await ask('/healthz')).status).toBe(200);
  expect((await ask('/readyz')).status).toBe(503);
});

test('any object with a status function can be queried', async () => {
  let up = true;
  const other = await serveHealthHttp({ statusOf: () => (up ? 'SERVING' : 'NOT_SERVING') });
  expect((await fetch(`http://${other.address}/readyz`)).status).toBe(200);
  up = false;
  expect((await fetch(`http://${other.address}/readyz`)).status).toBe(503);
  await other.close();
});

test('an invalid request gets 400 and the port continues', async () => {
  const port = Number(http.address.split(':')[1]);
  for (const text of ['garbage\r\n\r\n', 'GET //[ HTTP/1.1\r\nHost: x\r\n\r\n']) {
    const socket = connect(port, '127.0.0.1').setEncoding('utf8');
    socket.write(text);
    let answer = '';
    for await (const chunk of socket) answer += chunk;
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
  }
  expect((await ask('/readyz')).status).toBe(200);
});

test.each([
  ['nothing', ''],
  ['half a request', 'GET /healthz HTTP/1.1\r\nHost: '],
])('connections that send %s keep no probe out, and the oldest of them are closed', async (_, text) => {
  const port = Number(http.address.split(':')[1]);
  const open = new Set<Socket>();
  let closed = 0;
  let holding = true;
  // Each client reconnects when it is closed, as an attacker would.
  const hold = (): void => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    socket.on('error', () => undefined).resume();
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      ++closed;
      if (holding) hold();
    });
  };
  try {
    for (let i = 0; i < 3 * healthHttpConnections; ++i) hold();
    await until(() => [...open].every(({ readyState }) => readyState === 'open'));
    expect((await ask('/healthz')).status).toBe(200);
    await until(() => closed >= healthHttpConnections);
    expect((await ask('/readyz')).status).toBe(200);
  } finally {
    holding = false;
    for (const socket of open) socket.destroy();
  }
});

test.each([
  [{ port: 70_000 }, /port: 70000 is not an integer from 0 to 65535/],
  [{ prot: 1 } as object, /did you mean port/],
])('options %j are refused', async (options, reason) => {
  await expect(serveHealthHttp(health, options)).rejects.toThrow(reason);
});

test('a port in use is refused', async () => {
  const port = Number(http.address.split(':')[1]);
  await expect(serveHealthHttp(health, { port })).rejects.toThrow(/EADDRINUSE/);
});
