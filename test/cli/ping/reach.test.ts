/**
 * Tests how a server is reached, within the process of the tests: names with several addresses, and fabrics
 * that fail.
 */
import { createServer as createNetServer } from 'node:net';
import { createServer, type Server, type ServerOptions } from 'rdma-rpc';
import { afterEach, expect, test, vi } from 'vitest';
import type { PingFlags } from '../../../cli/ping/flags.ts';
import { pingOnce } from '../../../cli/ping/once.ts';
import { targetFor } from '../../../cli/ping/target.ts';
import { parseAddress } from '../../../runtime/control/socket/address.ts';

let server: Server | undefined;
afterEach(async () => {
  vi.unstubAllEnvs();
  await server?.shutdown({ graceMs: 0 });
  server = undefined;
});

async function serve(options: ServerOptions = {}): Promise<number> {
  server = createServer({ log: () => undefined, ...options });
  return Number((await server.listen('127.0.0.1:0')).split(':')[1]);
}

const flags: PingFlags = { timeout: 20_000, count: 1, interval: 0, concurrency: 1, credential: [] };

/** Pings a name that has these addresses. */
function ping(port: number, hosts: readonly string[], more: Partial<PingFlags> = {}) {
  const address = `server-7:${port}`;
  const target = { ...targetFor(parseAddress(address), { ...flags, ...more }), lookup: async () => hosts };
  return pingOnce(address, target, flags, () => undefined, new AbortController().signal);
}

test('an address that refuses is followed by the next one, with a line of its own', async () => {
  const port = await serve();
  const { steps, error } = await ping(port, ['127.0.0.2', '127.0.0.1']);
  expect(error).toBeUndefined();
  expect(steps.slice(0, 3)).toEqual([
    { step: 'resolve', ms: expect.any(Number), about: `127.0.0.2:${port}, 127.0.0.1:${port}` },
    {
      step: 'connect',
      ms: expect.any(Number),
      about: `127.0.0.2:${port}`,
      failed: expect.stringContaining('ECONNREFUSED'),
    },
    { step: 'connect', ms: expect.any(Number) },
  ]);
});

test('when all addresses refuse, the error is that of the last one', async () => {
  const port = await serve();
  const { steps, error } = await ping(port, ['127.0.0.3', '127.0.0.2']);
  expect(error).toMatchObject({ step: 'connect', message: expect.stringContaining('127.0.0.2') });
  expect(steps.map(({ step }) => step)).toEqual(['resolve', 'connect']);
});

test('an address that is connected is not followed by another, whatever it says', async () => {
  const webServer = createNetServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
  await new Promise<void>((resolve) => webServer.listen(0, '127.0.0.1', resolve));
  const { port } = webServer.address() as { port: number };
  const { steps, error } = await ping(port, ['127.0.0.1', '127.0.0.2']);
  webServer.close();
  expect(error).toMatchObject({ step: 'welcome', message: expect.stringMatching(/not an rdma-rpc peer/) });
  expect(steps.map(({ step }) => step)).toEqual(['resolve', 'connect']);
});

test('a name without an address is an error', async () => {
  const { error } = await ping(1, []);
  expect(error).toMatchObject({ step: 'connect', message: 'the name has no address' });
});

test('a fabric that fails has a line with the reason, and the next one is tried', async () => {
  const port = await serve({ fabric: ['verbs', 'shm'] });
  vi.stubEnv('RDMA_RPC_FABRIC', 'verbs,shm');
  const { steps, session, others } = await ping(port, ['127.0.0.1'], { device: 'nobodys0' });
  expect(session).toMatchObject({ fabric: 'shm' });
  const tried = steps.filter(({ step }) => step === 'attach');
  expect(tried).toEqual([
    { step: 'attach', ms: expect.any(Number), about: 'verbs', failed: expect.stringMatching(/./) },
    { step: 'attach', ms: expect.any(Number), about: 'shm' },
  ]);
  expect(others).toContainEqual({ name: 'verbs', reason: expect.stringMatching(/./) });
});
