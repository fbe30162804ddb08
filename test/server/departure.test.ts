/**
 * Tests the beginning of a shutdown: promises of listeners are awaited before clients are notified, with a
 * limit.
 */
import { createChannel, createClient, createServer } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { departureMs } from '../../runtime/limits.ts';
import { Departure } from '../../runtime/server/departure.ts';
import { turn } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

describe('the shutdown ends', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  let ended = false;
  const begun = (graceMs: number, ...listeners: (() => unknown)[]): Departure => {
    ended = false;
    const departure = new Departure();
    for (const each of listeners) departure.add(each);
    departure.begin(graceMs, async () => {
      ended = true;
    });
    return departure;
  };
  const never = new Promise<never>(() => undefined);

  test.each<[string, number, (() => unknown)[]]>([
    ['without listeners', 5000, []],
    ['with listeners that return nothing', 5000, [() => undefined, () => 5]],
    ['with a listener that throws', 5000, [() => assertNever()]],
    ['without a grace period', 0, [() => never]],
  ])('at once %s', (_, graceMs, listeners) => {
    const warning = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const departure = begun(graceMs, ...listeners);
    expect([departure.begun, departure.over, ended]).toEqual([true, true, true]);
    warning.mockRestore();
  });

  test('when all promises have settled', async () => {
    let settle!: () => void;
    const one = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const warning = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const departure = begun(
      5000,
      () => one,
      () => Promise.reject(new Error('no registry')),
    );
    await turn();
    expect([departure.begun, departure.over, ended]).toEqual([true, false, false]);
    settle();
    await departure.ended;
    expect(ended).toBe(true);
    expect(warning).toHaveBeenCalledOnce();
    warning.mockRestore();
  });

  test.each([
    [5000, departureMs],
    [300, 300],
  ])('of a grace period of %i ms after %i ms, whatever a listener promises', async (graceMs, limitMs) => {
    begun(graceMs, () => never);
    await vi.advanceTimersByTimeAsync(limitMs - 1);
    expect(ended).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(ended).toBe(true);
  });
});

function assertNever(): never {
  throw new Error('broken');
}

test('until a listener has done its work, the server accepts clients and calls', async () => {
  const server = createServer().add(EchoDefinition, { fetch: () => ({ text: 'here' }) });
  const address = await server.listen('127.0.0.1:0');
  const answers: (string | undefined)[] = [];
  let again: Promise<void> | undefined;
  server.onShutdown(async () => {
    const channel = createChannel(address);
    answers.push((await createClient(EchoDefinition, channel).fetch({})).text);
    await channel.close();
  });
  // A listener may itself request a shutdown, which is then the same shutdown.
  server.onShutdown(() => {
    again = server.shutdown();
  });
  const ended = server.shutdown();
  expect(server.stopping).toBe(true);
  await ended;
  expect(answers).toEqual(['here']);
  expect(again).toBe(ended);
  const late = createChannel(address);
  await expect(late.ready()).rejects.toThrow(/UNAVAILABLE/);
  await late.close();
});
