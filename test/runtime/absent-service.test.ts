/**
 * Tests calls of a service that the server does not have. The server does not know the name of the method,
 * but the client does.
 */
import { createClient, createInProcessChannel, RpcError } from 'rdma-rpc';
import { expect, test } from 'vitest';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';

const caught = (call: Promise<unknown>): Promise<RpcError> =>
  call.then(
    () => Promise.reject(new Error('the call was answered')),
    (error: unknown) => RpcError.from(error),
  );

test('the error names the method', async () => {
  await using channel = createInProcessChannel(() => {});
  expect(await caught(createClient(EchoDefinition, channel).echo({}))).toMatchObject({
    message: 'UNIMPLEMENTED: test.echo.Echo/Echo is not implemented by this server',
    processed: 'no',
  });
  expect(await caught(createClient(StreamsDefinition, channel).sum([]))).toMatchObject({
    message: expect.stringMatching(/^UNIMPLEMENTED: [\w.]+\/Sum is not implemented by this server$/),
    processed: 'no',
  });
});
