/** Tests that a connection that accepts calls and returns nothing is replaced by a new one. */
import { createClient, Status } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ClientLink } from '../../runtime/client/connections/client-link.ts';
import { Endpoint } from '../../runtime/client/connections/endpoint.ts';
import { verifyTimeoutMs } from '../../runtime/client/connections/limits.ts';
import { Silence } from '../../runtime/client/session/silence.ts';
import { type ClockMs, replaceClock } from '../../runtime/clock.ts';
import { Link } from '../../runtime/control/link.ts';
import { EvKind, PendingRelease, Reason } from '../../runtime/native/native.ts';
import { Bed, caught, until } from '../channel/bed.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { ClientBed } from './client-bed.ts';

let nowMs = 1000;

describe('a silence', () => {
  beforeEach(() => {
    nowMs = 1000;
    replaceClock(() => nowMs as ClockMs);
  });
  afterEach(() => replaceClock(undefined));

  /** Ends one call at its deadline at each of these times; `null` stands for a message of the server. */
  function silences(times: readonly (number | null)[]): number[] {
    const found: number[] = [];
    const silence = new Silence(() => found.push(nowMs - 1000));
    silence.limitMs = 5000;
    for (const time of times) {
      if (time === null) silence.heard();
      else {
        nowMs = 1000 + time;
        silence.deadline();
      }
    }
    return found;
  }

  test.each<[string, (number | null)[], number[]]>([
    ['three calls within the limit', [0, 1000, 4999], []],
    ['two calls beyond the limit', [0, 9000], []],
    ['three calls beyond the limit', [0, 1000, 5000], [5000]],
    ['each further call', [0, 1, 5000, 6000], [5000, 6000]],
    ['a sign of the server between them', [0, 1, null, 5000, 6000], []],
    ['many that end at one moment, after a long stop of this process', [70_000, 70_000, 70_000, 70_000], []],
  ])('%s', (_, times, expected) => {
    expect(silences(times)).toEqual(expected);
  });

  test('counts calls that the server may have run, in a session that receives nothing', () => {
    const bed = new ClientBed();
    bed.session.silence.limitMs = 5000;
    // The values are those of the event: 0 means no, 1 means maybe.
    const processed = [1, 0, 1, 1];
    for (const _ of processed) bed.call({});
    for (const [call, known] of processed.entries()) {
      nowMs += 3000;
      const held = PendingRelease.slot;
      bed.native.deliver({ kind: EvKind.failed, call, reason: Reason.deadline, processed: known, held });
    }
    expect([bed.session.silence.calls, bed.silences]).toEqual([3, 1]);
    bed.native.deliver({ kind: EvKind.released, call: 0 });
    expect(bed.session.silence.calls).toBe(0);
  });
});

describe('a silent connection', () => {
  let bed: Bed;
  let link: ClientLink | undefined;
  beforeEach(() => {
    bed = new Bed();
    const { onCallDone } = ClientLink.prototype;
    vi.spyOn(ClientLink.prototype, 'onCallDone').mockImplementation(function (this: ClientLink) {
      link = this;
      onCallDone.call(this);
    });
    bed.start('a:1');
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    vi.useRealTimers();
    await bed.close();
  });

  test('is kept when its server answers a ping', async () => {
    const client = createClient(EchoDefinition, bed.channel(['a:1']));
    await client.fetch({});
    const first = link!;
    const pong = vi.spyOn(Endpoint.prototype, 'onPong');
    first.onSilence();
    await until(() => pong.mock.calls.length > 0);
    await client.fetch({});
    expect([bed.dialled.length, first.draining]).toEqual([1, false]);
  });

  test('is left when its server does not answer a ping, and a call in flight stays on it', async () => {
    const client = createClient(EchoDefinition, bed.channel(['a:1']));
    await client.fetch({});
    const first = link!;
    const hurry = new AbortController();
    const slow = caught(client.behave({ text: 'hang' }, { signal: hurry.signal }));
    await until(() => bed.at('a:1').log.started > 0);
    const { send } = Link.prototype;
    const pings = vi.spyOn(Link.prototype, 'send').mockImplementation(function (this: Link, frame) {
      if (frame.type !== 'ping') send.call(this, frame);
    });
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    first.onSilence();
    first.onSilence();
    expect(pings).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(verifyTimeoutMs - 1);
    expect(first.draining).toBe(false);
    vi.advanceTimersByTime(1);
    vi.useRealTimers();
    expect(first.draining).toBe(true);
    await client.fetch({});
    expect(bed.dialled).toEqual(['a:1', 'a:1']);
    expect(first.ended).toBeUndefined();
    hurry.abort();
    expect(await slow).toMatchObject({ code: Status.CANCELLED });
    await until(() => first.ended === 'drained');
  });
});
