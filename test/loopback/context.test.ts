/**
 * Tests a loopback context as the native boundary: impossible sessions, and functions that never wait.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nativeOptions } from '../../runtime/boundary/contexts.ts';
import { LoopbackContext } from '../../runtime/loopback/context.ts';
import { Ev, EvKind } from '../../runtime/native/native.ts';

let context: LoopbackContext;
let seen: { kind: number; session: number }[];
beforeEach(() => {
  context = new LoopbackContext(nativeOptions('loopback'));
  seen = [];
  context.onEvents((count) => {
    for (let at = 0; at < count * Ev.words; at += Ev.words)
      seen.push({ kind: context.events[at + Ev.kind]!, session: context.events[at + Ev.session]! });
  });
});
afterEach(() => context.close());

const session = (role: 'client' | 'server'): number =>
  context.createSession({ role, inflightMax: 4, messageMaxBytes: 1000, peerMessageMaxBytes: 1000 });

test('both ends are up when both have called connect()', async () => {
  const [client, server] = [session('client'), session('server')];
  expect(context.connectSession(server, context.sessionAddress(client))).toBe('');
  await turn();
  expect(seen).toEqual([]);
  expect(context.connectSession(client, context.sessionAddress(server))).toBe('');
  await turn();
  expect(seen.map(({ kind }) => kind)).toEqual([EvKind.sessionUp, EvKind.sessionUp]);
  expect(context.sessionInfo(client).state).toBe('ready');
});

test.each([
  ['an address of no session', () => Uint8Array.of(9, 9, 9, 9)],
  ['an address of another length', () => Uint8Array.of(1)],
  ['another client', () => context.sessionAddress(session('client'))],
])('a client does not connect to %s', (_, address) => {
  expect(context.connectSession(session('client'), address())).toMatch(
    /^the other end of the session is not/,
  );
});

test('closing one end closes both, once, and their numbers are not used again', async () => {
  const [client, server] = [session('client'), session('server')];
  context.connectSession(server, context.sessionAddress(client));
  context.connectSession(client, context.sessionAddress(server));
  await turn();
  seen = [];
  context.closeSession(server, 'enough');
  context.closeSession(server, 'again');
  expect(context.sessionError(server)).toBe('enough');
  expect(context.sessionInfo(client)).toMatchObject({ state: 'down', endedThere: true });
  await turn();
  const down = EvKind.sessionDown;
  expect(seen).toEqual([
    { kind: down, session: server },
    { kind: down, session: client },
  ]);
  expect(context.stats().sessions).toBe(0);
  expect([client, server]).not.toContain(session('client'));
});

test('a registered buffer need not be referenced', async () => {
  expect(context.registerBuffer(2 ** 33 + 5)).toBe('');
  await turn();
  expect(seen.map(({ kind }) => kind)).toEqual([EvKind.evicted]);
  expect(context.holdsBuffer()).toBe(false);
});
