/**
 * Makes calls with large messages, in both directions and with every way to end, and measures the memory that
 * is kept afterwards. Several tests use it, each with different options.
 */
import { createChannel, createClient, createServer, leaseOf } from 'rdma-rpc';
import { expect, test, vi } from 'vitest';
import { peekContext } from '../../runtime/boundary/contexts.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { keptOn, nothingKept } from '../runtime/kept.ts';
import { socketPath } from '../runtime/world.ts';

const bytes = 256 * 1024;
/** Size of requests that are not copied into the arena; shorter requests are copied. */
const requestBytes = 5 * 1024 * 1024;
const calls = 24;

/** Returns the keys of buffers that must not be collected. */
const registered = (): readonly number[] => peekContext({ fabric: 'shm' }).outgoing.bulk.kept.registered;

export type End = 'answered' | 'deadline' | 'cancelled' | 'connection lost';
export const ends: readonly End[] = ['answered', 'deadline', 'cancelled', 'connection lost'];

/**
 * Declares tests of the buffers that are kept after calls have ended in each way. `registeredMost` is the
 * largest number of buffers that native code may keep registered with these options. `payloadBytes` is the
 * size of each request.
 */
export function nothingStays(registeredMost: number, payloadBytes = requestBytes): void {
  test.each(ends)('large messages of calls that end by: %s', async (end) => {
    let answer: () => void = () => undefined;
    const wait = new Promise<void>((resolve) => {
      answer = resolve;
    });
    let seen = 0;
    const respond = async (request: object): Promise<{ payload: Uint8Array }> => {
      leaseOf(request)?.release();
      ++seen;
      if (end !== 'answered') await wait;
      return { payload: new Uint8Array(bytes) };
    };
    const server = createServer().add(EchoDefinition, {
      echo: () => ({}),
      behave: respond,
      fetch: respond,
      missing: () => ({}),
    });
    const channel = createChannel(await server.listen(`unix:${socketPath()}`), {
      // The largest default, so that no call waits for a slot.
      inflightMax: 256,
    });
    const client = createClient(EchoDefinition, channel);
    await client.echo({});
    const giveUp = new AbortController();
    const settled = Promise.allSettled(
      Array.from({ length: calls }, async (_, i) => {
        const options = {
          ...(end === 'deadline' ? { timeoutMs: 300 } : {}),
          ...(end === 'cancelled' ? { signal: giveUp.signal } : {}),
        };
        const call =
          i % 2 === 0
            ? client.fetch({}, options)
            : client.behave({ payload: new Uint8Array(payloadBytes) }, options);
        leaseOf(await call)?.release();
      }),
    );
    if (end !== 'deadline') await vi.waitFor(() => expect(seen).toBe(calls), 20_000);
    if (end === 'cancelled') giveUp.abort();
    if (end === 'connection lost') await channel.close();
    if (end !== 'answered') await settled;
    // The handlers return their responses although no caller waits for these responses any more.
    answer();
    // The responses are then on their way, and the test can wait for the memory that is kept for them.
    await new Promise((resolve) => setImmediate(resolve));
    for (const result of await settled)
      expect(result.status).toBe(end === 'answered' ? 'fulfilled' : 'rejected');
    await vi.waitFor(() => expect(keptOn('shm')).toEqual(nothingKept), 20_000);
    expect(registered().length).toBeLessThanOrEqual(registeredMost);
    await channel.close();
    await server.shutdown({ graceMs: 0 });
  });
}
