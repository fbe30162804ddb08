/**
 * Tests the time limit of a handshake. The tests check which clients the server refuses, and that a step in
 * time counts even if it was read late.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Handshakes } from '../../runtime/control/handshake/handshakes.ts';
import type { Link } from '../../runtime/control/link.ts';
import { handshakeStallMs } from '../../runtime/limits.ts';

const limitMs = 1000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Returns a client whose test decides how many of its bytes the server has read. */
function client() {
  const link = { steps: 0, awaits: undefined as string | undefined, close: vi.fn() };
  const handshakes = new Handshakes(
    { handshakesMax: 8, sessionsPerPeerMax: 8, handshakeTimeoutMs: limitMs },
    () => false,
  );
  handshakes.begin(link as unknown as Link, '10.0.0.1');
  return { link, handshakes };
}

const refusals = ({ link }: ReturnType<typeof client>): unknown[] =>
  link.close.mock.calls.map(([why]) => why);
const refused = 'no handshake within 1000 ms (option handshakeTimeoutMs of the server)';

test('a silent client is refused', () => {
  const one = client();
  vi.advanceTimersByTime(limitMs - 1);
  vi.runAllTicks();
  expect(refusals(one)).toEqual([]);
  vi.advanceTimersByTime(2);
  expect(refusals(one)).toEqual([refused]);
});

test('a client whose answer arrived while this thread was busy is read first', () => {
  const one = client();
  vi.advanceTimersByTime(limitMs - 1);
  // Node reads the socket after this timer of the same millisecond, and before setImmediate().
  setTimeout(() => ++one.link.steps, 1);
  vi.advanceTimersByTime(1);
  vi.advanceTimersByTime(1);
  expect(refusals(one)).toEqual([]);
  vi.advanceTimersByTime(handshakeStallMs + 1);
  expect(refusals(one)).toEqual([refused]);
});

test('a decision that never comes ends the handshake', () => {
  const one = client();
  one.link.awaits = '`authenticate` of the server has not answered';
  vi.advanceTimersByTime(limitMs + 1);
  expect(refusals(one)).toEqual([
    '`authenticate` of the server has not answered within 1000 ms (option handshakeTimeoutMs of the server)',
  ]);
});

test('a handshake that ends in the meantime is not refused', () => {
  const one = client();
  setTimeout(() => one.handshakes.end(one.link as unknown as Link), limitMs);
  vi.advanceTimersByTime(limitMs + handshakeStallMs);
  expect(refusals(one)).toEqual([]);
});
