/**
 * Tests the check of a silent connection: which answers on the sideband connection and on the data connection
 * lead to which finding, and how long the check takes.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ClientLink } from '../../runtime/client/connections/client-link.ts';
import { verifyTimeoutMs } from '../../runtime/client/connections/limits.ts';
import { type Finding, SilenceCheck } from '../../runtime/client/connections/silence-check.ts';
import { FakeLink, settled, unimplemented } from './fake-link.ts';

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => vi.useRealTimers());

function begin() {
  const link = new FakeLink();
  const found: Finding[] = [];
  const check = new SilenceCheck(link as unknown as ClientLink, (finding) => found.push(finding));
  return { link, check, found };
}

type Step = (bed: ReturnType<typeof begin>) => void;
const pong: Step = ({ link, check }) => link.pong(check);
const wait: Step = () => void vi.advanceTimersByTime(verifyTimeoutMs);
const answer: Step = ({ link }) => link.fail(unimplemented);
const otherAnswer: Step = ({ link }) => link.silence.heard();
const noRoom: Step = ({ link }) => {
  link.room = false;
};
const noCredits: Step = ({ link }) => {
  link.processed = 'no';
};

test.each<[string, Step[], Finding, number]>([
  ['a server that answers nothing', [wait], 'no pong', 1],
  ['a server that answers both', [pong, answer], 'answers', 1],
  ['an answer that comes late', [pong, wait, pong, wait, answer], 'answers', 3],
  ['an answer before the last pong', [pong, wait, pong, wait, pong, wait, answer], 'answers', 4],
  ['the answer to another call', [pong, wait, otherAnswer, pong], 'answers', 2],
  ['pings alone are answered', [pong, wait, pong, wait, pong, wait, pong], 'no data', 4],
  ['a server that is blocked soon after the first pong', [pong, wait, wait], 'unknown', 2],
  ['a server that is blocked again and again', [pong, wait, pong, wait, pong, wait, wait], 'unknown', 4],
  ['no free call slot', [noRoom, pong], 'unknown', 1],
  ['no credits', [noCredits, pong, wait, pong, wait, pong, wait, pong], 'unknown', 4],
])('%s', async (_, steps, finding, pings) => {
  const bed = begin();
  for (const step of steps) {
    expect(bed.found).toEqual([]);
    step(bed);
    await settled();
  }
  expect([bed.found, bed.link.pings]).toEqual([[finding], pings]);
  // Nothing of the check is left but the timer of a ping that was not answered.
  bed.link.pong(bed.check);
  expect([bed.link.ownCalls, vi.getTimerCount(), bed.found.length]).toEqual([0, 0, 1]);
});

test('a check that is stopped finds nothing, and its call ends', async () => {
  const { link, check, found } = begin();
  link.pong(check);
  expect([link.probes, link.ownCalls]).toEqual([1, 1]);
  check.stop();
  await settled();
  vi.advanceTimersByTime(10 * verifyTimeoutMs);
  expect([found, link.ownCalls, link.pings]).toEqual([[], 0, 1]);
});
