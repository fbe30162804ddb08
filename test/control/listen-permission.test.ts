/**
 * With --permission, Node 26 and later refuse to listen on an IP address unless --allow-net is given. The
 * error names the flag.
 */
import { createServer } from 'rdma-rpc';
import { afterEach, expect, test, vi } from 'vitest';

afterEach(() => {
  vi.restoreAllMocks();
  Reflect.deleteProperty(process, 'permission');
});

/**
 * Makes this process look as if it ran with the permission model of Node. `flag` tells whether this Node
 * knows --allow-net, and `net` whether the flag was given.
 */
function permitted(flag: boolean, net: boolean): void {
  const has = (scope: string): boolean => scope !== 'net' || net;
  Object.defineProperty(process, 'permission', { value: { has }, configurable: true });
  const flags = new Set(flag ? ['--allow-net'] : []);
  vi.spyOn(process, 'allowedNodeEnvironmentFlags', 'get').mockReturnValue(flags);
}

test.each([
  ['Node 26 without --allow-net', true, false, /--allow-net/],
  ['Node 26 with it', true, true, undefined],
  ['Node 24, which has no such flag', false, false, undefined],
])('%s', async (_, flag, net, refusal) => {
  const server = createServer();
  permitted(flag, net);
  const listens = server.listen('127.0.0.1:0');
  if (refusal === undefined) expect(await listens).toMatch(/^127\.0\.0\.1:\d+$/);
  else await expect(listens).rejects.toThrow(refusal);
  await server.shutdown();
});
