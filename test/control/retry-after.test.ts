/**
 * When those of a crowd are told to come again, by whether the ones before them keep to what they were told.
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

/** A server's handshakes, with as many under way and waiting as there may be. */
function overloaded() {
  const handshakes = new Handshakes(
    { handshakesMax, sessionsPerPeerMax: 64, handshakeTimeoutMs: 5_000 },
    () => false,
  );
  /**
   * When one that comes from there is told to come again, in ms; undefined for one that gets a place or
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

const strangers = Array.from({ length: 2_000 }, (_, i) => `stranger ${i}`);

test('strangers who come again at once leave their appointments to a new client', () => {
  const comes = overloaded();
  const first = comes('the first')!;
  for (const each of strangers) comes(each);
  expect(comes('one behind them')).toBeGreaterThan(10 * first);
  for (const each of strangers) comes(each);
  expect(comes('a new client')).toBeLessThan(2 * first);
});

test('clients that wait are told times one after the other, whatever one stranger does', () => {
  const comes = overloaded();
  const first = comes('the first')!;
  for (const each of strangers) comes(each);
  for (let i = 0; i < 2_000; ++i) comes('one stranger, again and again');
  expect(comes('a new client')).toBeGreaterThan(10 * first);
});
