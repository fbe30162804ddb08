/**
 * Tests what becomes of a connection that was left because its server answers pings only. The kernel's
 * counters tell a slow network, whose bytes still move, from a proxy that drops what it acknowledges.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ClientLink } from '../../runtime/client/connections/client-link.ts';
import { silenceMaxMs, verifyTimeoutMs } from '../../runtime/client/connections/limits.ts';
import { SilenceChecks } from '../../runtime/client/connections/silence-checks.ts';
import type { SessionPath } from '../../runtime/native/native.ts';
import { FakeLink, settled, unimplemented } from './fake-link.ts';

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => vi.useRealTimers());

const pings = 4;

class Bed {
  readonly link = new FakeLink();
  readonly left: string[] = [];
  readonly checks = new SilenceChecks('a:1', (_, why) => this.left.push(why));
  readonly #silent = this.link as unknown as ClientLink;

  /** Begins the first check. */
  begin(): void {
    this.checks.begin(this.#silent);
  }

  /** Answers all pings of a check, and not its call. */
  async answerPings(): Promise<void> {
    for (let number = 1; number <= pings; ++number) {
      this.link.pong({ onPong: () => this.checks.onPong(this.#silent) });
      if (number < pings) vi.advanceTimersByTime(verifyTimeoutMs);
    }
    await settled();
  }

  /** Lets the minute before the next check pass, in which the kernel counts these bytes. */
  async minute(bytes?: SessionPath): Promise<void> {
    vi.advanceTimersByTime(verifyTimeoutMs);
    this.link.bytes = bytes;
    vi.advanceTimersByTime(silenceMaxMs - verifyTimeoutMs);
    await settled();
  }
}

async function left(bytes?: SessionPath): Promise<Bed> {
  const bed = new Bed();
  bed.link.bytes = bytes;
  bed.begin();
  await bed.answerPings();
  expect([bed.left, bed.link.ended]).toEqual([
    [expect.stringContaining('on the data connection')],
    undefined,
  ]);
  return bed;
}

const mib = 1 << 20;
const path = (acknowledged: number, pending: number, received = 500): SessionPath => ({
  acknowledged,
  pending,
  received,
});
/** Bytes of the call that a check makes. */
const probe = 80;

test.each<[string, SessionPath | undefined, SessionPath[]]>([
  ['the fabric has no counters', undefined, []],
  [
    'a proxy acknowledges and drops at once, also the calls of the checks',
    path(mib, 0),
    [path(mib + probe, 0)],
  ],
  ['a proxy takes nothing more', path(mib, mib), [path(mib, mib + probe)]],
  [
    'a proxy acknowledges and drops slowly, until nothing is pending',
    path(0, 3 * mib),
    [path(mib, 2 * mib), path(3 * mib, probe), path(3 * mib + probe, 0), path(3 * mib + 2 * probe, 0)],
  ],
  ['the answer stops on its way', path(mib, 0), [path(mib, 0, 600), path(mib, 0, 600)]],
])('the connection ends after the last minute: %s', async (_, first, minutes) => {
  const bed = await left(first);
  for (const bytes of minutes.length === 0 ? [undefined] : minutes) {
    expect(bed.link.ended).toBeUndefined();
    await bed.minute(bytes);
    await bed.answerPings();
  }
  expect(bed.link.ended).toMatch(/^nothing comes over the data connection to a:1/);
  expect(vi.getTimerCount()).toBe(0);
});

test('the end of the check itself, which is on its way when the connection is left, is no sign of life', async () => {
  const bed = await left(path(mib, probe));
  // The proxy acknowledges it after a round trip, and later the call of the next check.
  bed.link.bytes = path(mib + probe, 0);
  await bed.minute(path(mib + 2 * probe, 0));
  await bed.answerPings();
  expect(bed.link.ended).toMatch(/^nothing comes over the data connection to a:1/);
});

test.each<[string, (minute: number) => SessionPath]>([
  ['an upload', (minute) => path(minute * mib, 100 * mib)],
  ['an upload of one byte in a minute', (minute) => path(minute, 100 * mib)],
  ['a download', (minute) => path(mib, 0, minute)],
])('a slow network keeps its calls for an hour: %s', async (_, bytes) => {
  const bed = await left(bytes(0));
  for (let minute = 1; minute <= 60; ++minute) {
    await bed.minute(bytes(minute));
    await bed.answerPings();
  }
  expect(bed.link.ended).toBeUndefined();
  // At last the upload has arrived, and the call of the check is answered.
  await bed.minute(bytes(61));
  bed.link.pong({ onPong: () => bed.checks.onPong(bed.link as unknown as ClientLink) });
  bed.link.silence.heard();
  bed.link.fail(unimplemented);
  await settled();
  expect([bed.link.ended, vi.getTimerCount()]).toEqual([undefined, 0]);
});

test('the kernel is asked only about a connection that would end', async () => {
  const bed = new Bed();
  const asked = vi.spyOn(bed.link, 'path');
  bed.begin();
  bed.link.pong({ onPong: () => bed.checks.onPong(bed.link as unknown as ClientLink) });
  bed.link.fail(unimplemented);
  await settled();
  expect([bed.left, asked.mock.calls.length]).toEqual([[], 0]);
});
