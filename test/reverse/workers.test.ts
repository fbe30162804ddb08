/** Tests calls from the workers of a group to the clients that are connected to these workers. */
import { pathToFileURL } from 'node:url';
import { createChannel, createClient, leaseOf } from 'rdma-rpc';
import { serveReverse } from 'rdma-rpc/reverse';
import { serveWorkers } from 'rdma-rpc/workers';
import { expect, test, vi } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { compiled } from '../runtime/process/processes.ts';

test.each(['shm', 'tcp'] as const)('over %s: the thread of a connection calls its client', async (fabric) => {
  const file = pathToFileURL(compiled('group-worker'));
  await using group = await serveWorkers(file, { address: '127.0.0.1:0', workers: 3 });
  for (let i = 0; i < 6; ++i) {
    await using channel = createChannel(group.address, { fabric });
    const served = vi.fn();
    await using reverse = serveReverse(channel).add(EchoDefinition, {
      echo: (request) => {
        served();
        return request;
      },
    });
    await reverse.ready;
    const payload = new Uint8Array(300_000).fill(i);
    const answer = await createClient(EchoDefinition, channel).behave({ text: 'call back', payload });
    expect(Buffer.compare(answer.payload, payload)).toBe(0);
    expect(served).toHaveBeenCalledTimes(1);
    leaseOf(answer)?.release();
  }
});
