/**
 * Tests that unused registrations end after `idleMs`, even under steady traffic, which never lets the thread
 * sleep for long.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { configure, createClient, leaseOf } from 'rdma-rpc';
import { expect, test, vi } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { registeredBytes } from '../runtime/kept.ts';
import { openWorld } from '../runtime/world.ts';

configure({ mrCacheIdleMs: 100 });

test('idle registrations end under a steady flow of small calls', { timeout: 120_000 }, async () => {
  const world = await openWorld('shm over unix');
  const client = createClient(EchoDefinition, world.channel);
  // Shorter buffers are copied instead of registered.
  const buffers = Array.from({ length: 8 }, () => new Uint8Array(5 * 1024 * 1024));
  for (const payload of buffers) leaseOf(await client.echo({ payload }))?.release();
  expect(registeredBytes('shm')).toBeGreaterThan(0);
  let over = false;
  const traffic = (async () => {
    while (!over) {
      await client.echo({ number: 1 });
      await sleep(5);
    }
  })();
  await vi.waitFor(() => expect(registeredBytes('shm')).toBe(0), { timeout: 60_000, interval: 50 });
  over = true;
  await traffic;
  await world.close();
});
