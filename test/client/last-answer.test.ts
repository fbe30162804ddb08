/**
 * Tests that an idle channel keeps nothing of its last call: the memory of a response that was not kept is
 * freed.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createClient, stats } from 'rdma-rpc';
import { expect, test, vi } from 'vitest';
import { echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { openPair } from '../runtime/pair.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

test('the answer of the last call is released when it is collected', async () => {
  const pair = await openPair('shm', (server) =>
    server.add(EchoDefinition, echoHandlers({ started: 0, aborted: [] })),
  );
  const client = createClient(EchoDefinition, pair.channel);
  const length = async () => (await client.fetch({ number: 300_000 })).payload.byteLength;
  expect(await length()).toBe(300_000);
  await vi.waitFor(() => {
    collect();
    expect(stats('shm').arenaLeasedBlocks).toBe(0);
  }, 10_000);
  await pair.close();
});
