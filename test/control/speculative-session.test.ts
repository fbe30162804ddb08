/**
 * Tests the session that a server makes before its client asks for one. The tests check when the session
 * exists, which client gets it, and when it is removed.
 */
import { configure } from 'rdma-rpc';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { hostIdentity } from '../../runtime/control/host.ts';
import type { Link } from '../../runtime/control/link.ts';
import { EvKind } from '../../runtime/native/native.ts';
import { RpcServer } from '../../runtime/server/server.ts';
import { turn, until } from '../outcomes.ts';
import { makes, native, natives } from '../runtime/fake-loader.ts';
import { FakeNative } from '../runtime/fake-native.ts';
import { hello, linkTo } from './by-hand.ts';

vi.mock('../../runtime/native/native.ts', async (original) =>
  (await import('../runtime/fake-loader.ts')).faked(original),
);
makes(() => new FakeNative());

let server: RpcServer;
beforeEach(() => {
  configure({});
  natives.clear();
  server = new RpcServer({ fabric: ['shm', 'verbs'], log: () => undefined });
  server.open();
});
afterEach(async () => {
  let open = true;
  void server.shutdown({ graceMs: 0 }).then(() => {
    open = false;
  });
  while (open) {
    for (const each of natives.values()) each.endClosed();
    await turn();
  }
});

/** Connects a client that accepts these fabrics and has been welcomed. */
async function welcomed(...fabrics: string[]): Promise<Link> {
  const link = linkTo(server);
  link.send(hello({ fabrics: fabrics.map((name) => ({ name, host: hostIdentity() })) }));
  expect(await link.receive()).toMatchObject({ type: 'welcome' });
  await turn();
  return link;
}
const attach = (link: Link, fabric: string): void =>
  link.send({ type: 'attach', fabric, address: Uint8Array.of(9) });
/** Resolves to the session of the server that is announced to the client. */
async function attachedTo(link: Link): Promise<number> {
  const frame = await link.receive();
  if (frame.type !== 'attached') throw new Error(frame.type);
  return frame.address[0]! - 1;
}
const notNeeded = (fabric: string): number[] =>
  native(fabric)
    .closes.filter(({ reason }) => reason === 'it was not needed')
    .map(({ session }) => session);

test('the speculative session exists when the welcome was sent, and the attach gets it', async () => {
  const link = await welcomed('shm', 'verbs');
  expect(native('shm').sessions.size).toBe(1);
  attach(link, 'shm');
  expect(await attachedTo(link)).toBe(0);
  expect(native('shm').sessions.size).toBe(1);
  link.send({ type: 'ready' });
  await until(() => server.sessions.length === 1);
  expect(notNeeded('shm')).toEqual([]);
});

test('the speculative session is replaced by another one when the client chooses another fabric', async () => {
  const link = await welcomed('shm', 'verbs');
  attach(link, 'verbs');
  expect(await link.receive()).toMatchObject({ type: 'attached' });
  expect(native('verbs').sessions.size).toBe(1);
  link.send({ type: 'ready' });
  await until(() => notNeeded('shm').length === 1);
  native('shm').endClosed();
  expect(server.sessionCount).toBe(1);
});

test('the second attempt at a fabric does not get the session of the first', async () => {
  const link = await welcomed('shm', 'verbs');
  native('shm').connectError = 'not today';
  attach(link, 'shm');
  expect(await link.receive()).toMatchObject({ type: 'unreachable' });
  native('shm').connectError = '';
  attach(link, 'shm');
  expect(await attachedTo(link)).toBe(1);
});

test('a client that gets its fabric only with its second attempt has a session made for that: it has the keys of the first', async () => {
  const link = await welcomed('shm', 'verbs');
  native('verbs').connectError = 'not today';
  attach(link, 'verbs');
  expect(await link.receive()).toMatchObject({ type: 'unreachable' });
  attach(link, 'shm');
  expect(await attachedTo(link)).toBe(1);
  link.send({ type: 'ready' });
  await until(() => notNeeded('shm').length === 1);
  expect(notNeeded('shm')).toEqual([0]);
});

test('a speculative session that could not be made is made again on request', async () => {
  const create = vi.spyOn(native('shm'), 'createSession').mockImplementationOnce(() => {
    throw new Error('too many sessions');
  });
  const link = await welcomed('shm');
  attach(link, 'shm');
  expect(await link.receive()).toMatchObject({ type: 'attached' });
  expect(create).toHaveBeenCalledTimes(2);
});

test.each([
  ['sends `bye`', (link: Link) => link.send({ type: 'bye', reason: 'enough' })],
  ['goes', (link: Link) => link.close('gone')],
  ['breaks the rules', (link: Link) => link.send({ type: 'ready' })],
])('it goes when the client %s', async (_, end) => {
  const link = await welcomed('shm');
  end(link);
  await until(() => notNeeded('shm').length === 1);
});

test('the speculative session may be lost before the client asks for it', async () => {
  const link = await welcomed('shm');
  native('shm').deliver({ kind: EvKind.sessionDown, session: 0 });
  native('shm').connectError = 'it is down';
  attach(link, 'shm');
  expect(await link.receive()).toMatchObject({ type: 'unreachable' });
});

test.each([
  ['the client would rather have another fabric', ['verbs', 'shm']],
  ['a device may have to be opened for it', ['verbs']],
])('there is none where %s', async (_, fabrics) => {
  await welcomed(...fabrics);
  expect(native('shm').sessions.size).toBe(0);
  expect(native('verbs').sessions.size).toBe(0);
});

test('no speculative session is made while other handshakes are in progress, however many clients send hello', async () => {
  const links = [linkTo(server)];
  for (let i = 0; i < 20; ++i) links.push(await welcomed('shm'));
  expect(native('shm').sessions.size).toBe(0);
  for (const link of links) link.send({ type: 'bye', reason: 'enough' });
  await until(() => links.every((link) => link.ended !== undefined));
  await welcomed('shm');
  expect(native('shm').sessions.size).toBe(1);
});
