/**
 * Tests a call as telemetry sees it. The call ends once, even if its reader ends it several times, and with
 * the status of the first end.
 */
import { RpcError, type RpcRequest, Status } from 'rdma-rpc';
import { expect, test } from 'vitest';
import { observedCall } from '../../runtime/adapters/telemetry/observed-call.ts';

/** Yields a stream of two messages, or of one message and an error. */
async function* messages(fails: boolean): AsyncGenerator<number> {
  yield 1;
  if (fails) throw new RpcError(Status.ABORTED, 'on purpose');
  yield 2;
}

type Read = (stream: AsyncIterableIterator<unknown>) => Promise<unknown>;
const all: Read = async (stream) => {
  for (;;) if ((await stream.next()).done) return;
};

test.each<[string, boolean, Read, string]>([
  ['read to its end', false, all, 'OK'],
  ['read past its end', false, async (stream) => [await all(stream), await all(stream)], 'OK'],
  ['read to its end and left', false, async (stream) => [await all(stream), await stream.return?.()], 'OK'],
  ['left', false, async (stream) => [await stream.next(), await stream.return?.()], 'CANCELLED'],
  ['left twice', false, async (stream) => [await stream.return?.(), await stream.return?.()], 'CANCELLED'],
  ['left and read', false, async (stream) => [await stream.return?.(), await all(stream)], 'CANCELLED'],
  ['read until it fails', true, (stream) => all(stream).catch(() => undefined), 'ABORTED'],
  [
    'read until it fails, and left',
    true,
    async (stream) => {
      await all(stream).catch(() => undefined);
      await stream.return?.();
    },
    'ABORTED',
  ],
])('a stream that is %s ends once', async (_, fails, read, status) => {
  const ended: string[] = [];
  const request = { side: 'client', signal: undefined } as unknown as RpcRequest;
  const response = await observedCall(
    async () => ({ stream: true, message: messages(fails) }) as never,
    request,
    () => ({ run: (part) => part(), done: (code) => ended.push(code) }),
  );
  await read(response.message as AsyncIterableIterator<unknown>);
  expect(ended).toEqual([status]);
});
