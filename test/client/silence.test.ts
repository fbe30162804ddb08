/** A connection that takes calls and brings nothing back is left for a new one. */
import { createClient, Status } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ClientLink } from '../../runtime/client/connections/client-link.ts';
import { Silence } from '../../runtime/client/session/silence.ts';
import { type ClockMs, replaceClock } from '../../runtime/clock.ts';
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

  /** Ends one call at its deadline at each of these times, `null` for a sign of the server. */
  function silences(times: readonly (number | null)[]): number[] {
    const found: number[] = [];
    const silence = new Silence((silentMs) => found.push(silentMs));
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

  test('counts calls that the server has not released', () => {
    const bed = new ClientBed();
    bed.session.silence.limitMs = 5000;
    const end = (call: number, held: number) =>
      bed.native.deliver({ kind: EvKind.failed, call, reason: Reason.deadline, processed: 1, held });
    for (let call = 0; call < 4; ++call) bed.call({});
    for (const [call, held] of [PendingRelease.slot, 0, PendingRelease.slot, PendingRelease.slot].entries()) {
      nowMs += 3000;
      end(call, held);
    }
    // The second call is released at once, so it counts for nothing.
    expect(bed.silences).toEqual([9000]);
    bed.native.deliver({ kind: EvKind.released, call: 0 });
    expect(bed.session.silence.calls).toBe(0);
  });
});

test('new calls use another connection; a call that is under way stays on the silent one', async () => {
  const bed = new Bed();
  let link: ClientLink | undefined;
  const { onCallDone } = ClientLink.prototype;
  vi.spyOn(ClientLink.prototype, 'onCallDone').mockImplementation(function (this: ClientLink) {
    link = this;
    onCallDone.call(this);
  });
  bed.start('a:1');
  const channel = bed.channel(['a:1']);
  const client = createClient(EchoDefinition, channel);
  await client.fetch({});
  const signal = new AbortController();
  const slow = caught(client.behave({ text: 'hang' }, { signal: signal.signal }));
  await until(() => bed.at('a:1').log.started > 0);
  const first = link!;
  first.onSilence(6000);
  first.onSilence(7000);
  expect(await client.fetch({})).toMatchObject({ text: 'a:1' });
  expect(bed.dialled).toEqual(['a:1', 'a:1']);
  expect(first.ended).toBeUndefined();
  signal.abort();
  expect(await slow).toMatchObject({ code: Status.CANCELLED });
  await until(() => first.ended === 'drained');
  vi.restoreAllMocks();
  await bed.close();
});
