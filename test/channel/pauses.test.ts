/**
 * Tests the pauses that a server asks for before a call is repeated. A pause ends at the call's deadline,
 * when its signal aborts, and when its channel closes.
 */
import { createClient, Metadata, RpcError, Status } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RpcServer } from '../../runtime/server/server.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, caught, turn, until } from './bed.ts';

let bed: Bed;
beforeEach(() => {
  bed = new Bed();
});
afterEach(() => bed.close());

/**
 * Returns a client of a server that asks the client to repeat each call after a minute; `calls` counts the
 * calls.
 */
function putOff() {
  const seen = { calls: 0 };
  const server = new RpcServer({}, ['sim']).add(EchoDefinition, {
    behave: () => {
      ++seen.calls;
      const trailer = new Metadata({ 'retry-pushback-ms': '60000' });
      throw new RpcError(Status.UNAVAILABLE, 'as planned', { trailer });
    },
  });
  bed.running.set('a:1', { server, log: { started: 0, aborted: [] } });
  const channel = bed.channel(['a:1']);
  return { seen, channel, client: createClient(EchoDefinition, channel, { behave: { idempotent: true } }) };
}

describe.each([
  ['retry', { retry: { attemptsMax: 3, backoffMs: 0 } }],
  ['hedging', { hedging: { attemptsMax: 3, delayMs: 60_000 } }],
] as const)('a pause of %s', (_, options) => {
  test('is not begun when it goes beyond the deadline', async () => {
    const { client, seen } = putOff();
    const error = await caught(client.behave({}, { ...options, timeoutMs: 20_000 }));
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, rawMessage: 'as planned' });
    expect(seen.calls).toBe(1);
  });

  test('ends with the signal', async () => {
    const { client, seen } = putOff();
    const controller = new AbortController();
    const call = caught(client.behave({}, { ...options, signal: controller.signal }));
    await until(() => seen.calls === 1);
    await turn();
    controller.abort();
    expect(await call).toMatchObject({ code: Status.CANCELLED });
    expect(seen.calls).toBe(1);
  });

  test('ends with the channel, and so does the call', async () => {
    const { client, channel, seen } = putOff();
    const call = caught(client.behave({}, options));
    await until(() => seen.calls === 1);
    await turn();
    await channel.close();
    expect(await call).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    expect(seen.calls).toBe(1);
  });
});
