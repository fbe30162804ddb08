/**
 * A proxy acknowledges the bytes of the data connection and drops them, while it passes on the sideband
 * connection. test/tcp/swallowed.test.ts has the same case with a clock that the test moves; here all times
 * are real: npm run test:slow.
 */
import { createChannel, createClient, createServer, Status } from 'rdma-rpc';
import { afterEach, expect, test } from 'vitest';
import { caught } from '../outcomes.ts';
import { type EchoLog, echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { type Passage, portOf, Relay } from '../tcp/proxy.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

test('calls leave a connection whose data is dropped, and a call without a deadline ends', async () => {
  const log: EchoLog = { started: 0, aborted: [] };
  const server = createServer().add(EchoDefinition, echoHandlers(log));
  closing.push(() => server.shutdown({ graceMs: 0 }));
  const port = portOf(await server.listen('127.0.0.1:0'));
  const passages: Passage[] = [];
  const relay = new Relay(
    () => port,
    (passage) => passages.push(passage),
  );
  closing.push(() => relay.close());
  const channel = createChannel(await relay.listen(), { fabric: 'tcp' });
  closing.push(() => channel.close());
  const client = createClient(EchoDefinition, channel);
  await client.fetch({});
  const hanging = caught(client.behave({ text: 'hang' }));
  const { client: near, server: far } = passages[1]!;
  near.unpipe(far);
  near.resume();
  // Calls reach their deadlines until the channel has noticed that nothing comes, and then succeed.
  let failed = 0;
  for (;;) {
    const error = await client.fetch({}, { timeoutMs: 500 }).then(
      () => undefined,
      (cause: unknown) => cause,
    );
    if (error === undefined) break;
    expect(error).toMatchObject({ code: Status.DEADLINE_EXCEEDED });
    ++failed;
  }
  expect(failed).toBeGreaterThanOrEqual(3);
  expect(passages).toHaveLength(4);
  expect(await hanging).toMatchObject({
    code: Status.UNAVAILABLE,
    message: expect.stringContaining('nothing comes over the data connection to'),
  });
});
