/**
 * Tests the retry times that clients get under overload. The times depend on whether earlier clients retry at
 * their times.
 */
import { duplexPair } from 'node:stream';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { replaceClock } from '../../runtime/clock.ts';
import { Handshakes } from '../../runtime/control/handshake/handshakes.ts';
import { Link } from '../../runtime/control/link.ts';
import { pushback } from '../../runtime/core/errors/pushback.ts';
import type { RpcError } from '../../runtime/core/errors/rpc-error.ts';
import { handshakeQueueFactor } from '../../runtime/limits.ts';

const handshakesMax = 4;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  replaceClock(() => performance.now());
});
afterEach(() => {
  replaceClock(undefined);
  vi.useRealTimers();
});

/** Makes a server's handshakes, with the maximum number in progress and waiting. */
function overloaded() {
  const handshakes = new Handshakes(
    { handshakesMax, sessionsPerPeerMax: 64, handshakeTimeoutMs: 5_000 },
    () => false,
  );
  /**
   * Returns the retry time in ms that a client from this address gets, or undefined when it gets a slot or
   * waits.
   */
  const comes = (address: string): number | undefined => {
    const link = new Link(duplexPair()[0]);
    handshakes.begin(link, address);
    try {
      handshakes.enter(link)?.catch(() => undefined);
      return undefined;
    } catch (error) {
      handshakes.end(link);
      return pushback(error as RpcError) as number;
    }
  };
  for (let i = 0; i < handshakesMax * (1 + handshakeQueueFactor); ++i)
    expect(comes(`one that is served ${i}`)).toBeUndefined();
  return comes;
}

const peers = Array.from({ length: 2_000 }, (_, i) => `peer ${i}`);

test('unauthenticated peers that retry too early lose their retry times to a new client', () => {
  const comes = overloaded();
  const first = comes('the first')!;
  for (const each of peers) comes(each);
  expect(comes('one behind them')).toBeGreaterThan(10 * first);
  for (const each of peers) comes(each);
  expect(comes('a new client')).toBeLessThan(2 * first);
});

test('waiting clients get successive retry times, whatever an unauthenticated peer does', () => {
  const comes = overloaded();
  const first = comes('the first')!;
  for (const each of peers) comes(each);
  for (let i = 0; i < 2_000; ++i) comes('one peer, again and again');
  expect(comes('a new client')).toBeGreaterThan(10 * first);
});
