/** Tests that memory to which peers can write is marked, so that decoders take care. */
import { createClient } from 'rdma-rpc';
import { expect, test } from 'vitest';
import { isShared } from '../../runtime/codec/memory/shared-memory.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { openPair, pairWays } from '../runtime/pair.ts';

test.each(pairWays)('over %s', async (way) => {
  let requestShared: boolean | undefined;
  const pair = await openPair(way, (server) =>
    server.add(EchoDefinition, {
      echo: (request) => {
        requestShared = isShared(request.payload.buffer);
        return request;
      },
    }),
  );
  const client = createClient(EchoDefinition, pair.channel);
  const large = await client.echo({ payload: new Uint8Array(500_000) });
  expect([requestShared, isShared(large.payload.buffer)]).toEqual(
    way === 'shm' ? [true, true] : [false, false],
  );
  // A message that fits a slot is decoded from memory of this process alone.
  const small = await client.echo({ payload: new Uint8Array(5000) });
  expect([requestShared, isShared(small.payload.buffer)]).toEqual([false, false]);
  await pair.close();
});
