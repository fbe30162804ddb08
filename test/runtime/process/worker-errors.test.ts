/** Tests the async context in which `onWorkerError` reports a crashed worker. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { pathToFileURL } from 'node:url';
import { createChannel, createClient } from 'rdma-rpc';
import { serveWorkers } from 'rdma-rpc/workers';
import { expect, test } from 'vitest';
import { caught, until } from '../../outcomes.ts';
import { EchoDefinition } from '../gen/echo.rdma.ts';
import { compiled } from './processes.ts';

test('onWorkerError sees no store of the code that started the group', async () => {
  const user = new AsyncLocalStorage<string>();
  const seen: (string | undefined)[] = [];
  const group = await user.run('alice', () =>
    serveWorkers(pathToFileURL(compiled('group-worker')), {
      address: '127.0.0.1:0',
      workers: 1,
      onWorkerError: () => seen.push(user.getStore()),
    }),
  );
  const channel = createChannel(group.address);
  try {
    await caught(createClient(EchoDefinition, channel).behave({ text: 'crash' }));
    await until(() => seen.length > 0);
    expect(seen).toEqual([undefined]);
  } finally {
    await channel.close();
    await group.shutdown({ graceMs: 0 });
  }
});
