/** Tests a cancellation in a loopback session: whether it says that the handler of the call has begun. */
import { expect, test } from 'vitest';
import { eventOf, type LoopbackEvent } from '../../runtime/loopback/events.ts';
import { type LoopbackCall, LoopbackSession, Processed } from '../../runtime/loopback/session.ts';
import { EvKind, Reason } from '../../runtime/native/native.ts';

test.each<[string, boolean[], number]>([
  ['a handler that has begun at once', [], Processed.yes],
  ['a handler that waits', [true], Processed.no],
  ['a handler that has waited', [true, false], Processed.yes],
])('%s', (_, deferred, processed) => {
  const events: LoopbackEvent[] = [];
  const host = { emit: (event: LoopbackEvent) => void events.push(event), drop: () => undefined };
  const options = { inflightMax: 4, messageMaxBytes: 1000, peerMessageMaxBytes: 1000 };
  const client = new LoopbackSession(1, { ...options, role: 'client' }, host);
  const server = new LoopbackSession(2, { ...options, role: 'server' }, host);
  client.connect(server);
  server.connect(client);
  const call: LoopbackCall = {
    slot: 3,
    handle: 7,
    confirmed: true,
    replyBuffer: 0,
    replyBufferOnly: false,
    counts: true,
    request: eventOf(EvKind.request, 2, { call: 7 }),
    answer: undefined,
    leaving: false,
  };
  client.begin(call, server);
  server.onRequest(7);
  for (const each of deferred) expect(server.deferHandler(7, each)).toBe(true);
  client.cancel(3, Reason.cancelled);
  expect(server.onCancelled(events.find(({ kind }) => kind === EvKind.cancelled)!)).toBe(true);
  expect(events.at(-1)).toMatchObject({ kind: EvKind.settled, session: 1, call: 3, processed });
  // The call is over, so its handler must not begin now.
  expect(server.deferHandler(7, false)).toBe(false);
});
