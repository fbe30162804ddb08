/**
 * Tests streams before a server exists. Such streams fail at once, or wait for a server if they are told to.
 */
import { createChannel, createClient, createServer, Status } from 'rdma-rpc';
import { expect, test } from 'vitest';
import { socketPath } from '../runtime/world.ts';
import { StreamsDefinition } from './gen/stream.rdma.ts';
import { caught, collect } from './stream-world.ts';
import { newLog, streamHandlers } from './streams-service.ts';

test('a stream of each kind waits for the server', async () => {
  const address = `unix:${socketPath()}`;
  const channel = createChannel(address, { backoffMs: 1, backoffMaxMs: 1 });
  const client = createClient(StreamsDefinition, channel);
  const items = [{ number: 1 }, { number: 2 }];
  for (const call of [
    () => collect(client.count({ count: 3 })),
    () => client.sum(items),
    () => collect(client.echo(items)),
  ]) {
    expect(await caught(call)).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
  }
  const waitForReady = true;
  const patient = [
    collect(client.count({ count: 3 }, { waitForReady })),
    client.sum(items, { waitForReady }).then((sum) => [sum]),
    collect(client.echo(items, { waitForReady })),
  ];
  expect(await caught(() => client.sum(items, { waitForReady, timeoutMs: 20 }))).toMatchObject({
    code: Status.DEADLINE_EXCEEDED,
    processed: 'no',
  });
  const server = createServer().add(StreamsDefinition, streamHandlers(newLog()));
  await server.listen(address);
  const numbers = (await Promise.all(patient)).map((all) => all.map(({ number }) => number));
  expect(numbers).toEqual([[0, 1, 2], [3], [1, 2]]);
  await channel.close();
  await server.shutdown({ graceMs: 0 });
});
