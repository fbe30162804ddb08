/**
 * Tests that arena memory that was not used for some seconds goes back to the system, both in an idle process
 * and beside small calls. V8 must first have collected all dropped messages. Messages that became old while
 * in use need a full collection.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createClient, stats } from 'rdma-rpc';
import { expect, test, vi } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { openWorld } from '../runtime/world.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const MiB = 1 << 20;
/** The number of bytes that stay (native/memory/arena.h). */
const keptBytes = 8 * MiB;

test.each([
  ['nothing else', false],
  ['small traffic', true],
])('after large calls, when %s comes', { timeout: 120_000 }, async (_, small) => {
  const world = await openWorld('shm over unix');
  const client = createClient(EchoDefinition, world.channel);
  const payload = new Uint8Array(MiB);
  const echoes = async (): Promise<void> => {
    const one = async (): Promise<number> => (await client.echo({ payload })).payload.length;
    const lengths = await Promise.all(Array.from({ length: 32 }, one));
    expect(lengths.every((length) => length === MiB)).toBe(true);
  };
  await echoes();
  expect(stats('shm').arenaBytes).toBeGreaterThan(2 * keptBytes);
  let over = false;
  const traffic = (async () => {
    while (small && !over) {
      await client.echo({ number: 1 });
      await sleep(5);
    }
  })();
  collect();
  await vi.waitFor(() => expect(stats('shm').arenaBytes).toBeLessThanOrEqual(keptBytes), {
    timeout: 60_000,
    interval: 50,
  });
  over = true;
  await traffic;
  // The arena can grow again when more memory is needed.
  await echoes();
  await world.close();
});
