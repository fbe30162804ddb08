/**
 * Tests how the chosen fabric leads to a connected session, with native sides that the tests script. Sessions
 * connect late, fail late, or are lost at the worst moment. The next fabric is then tried.
 */
import { type Duplex, duplexPair } from 'node:stream';
import { configure, createClient, RpcError, Status } from 'rdma-rpc';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { ClientChannel } from '../../runtime/client/channel.ts';
import type { ChannelOptions } from '../../runtime/client/channel-options.ts';
import { encodeFrame } from '../../runtime/control/link.ts';
import { EvKind } from '../../runtime/native/native.ts';
import { RpcServer } from '../../runtime/server/server.ts';
import { turn, until } from '../outcomes.ts';
import { makes, native, natives } from '../runtime/fake-loader.ts';
import { FakeNative } from '../runtime/fake-native.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

vi.mock('../../runtime/native/native.ts', async (original) =>
  (await import('../runtime/fake-loader.ts')).faked(original),
);
makes(() => new FakeNative());

let server: RpcServer;
let channel: ClientChannel;
let lines: string[];
let serverLines: string[];
/** The server's end of the last connection. */
let serverEnd: Duplex;

/** Makes a client and a server that have `fabrics` in common. The client has begun to connect. */
function open(fabrics: ('shm' | 'verbs')[], options: ChannelOptions = {}): Promise<void> {
  // Closes the unused contexts of the previous test, so that each fabric gets a new native side.
  configure({});
  natives.clear();
  lines = [];
  serverLines = [];
  server = new RpcServer({ fabric: fabrics, log: (line) => serverLines.push(line) });
  server.add(EchoDefinition, { echo: (r) => r });
  const dial = async () => {
    const [near, far] = duplexPair();
    server.accept(far, 'client');
    serverEnd = far;
    return near;
  };
  const log = (line: string) => void lines.push(line);
  channel = new ClientChannel({ address: 'server', dial }, { fabric: fabrics, log, ...options });
  const ready = channel.ready();
  ready.catch(() => undefined);
  return ready;
}
/**
 * Resolves to the client's and the server's session on a fabric, as soon as both have been told to connect.
 */
async function connecting(fabric: string): Promise<{ client: number; server: number }> {
  await until(() => natives.get(fabric)?.connected.length === 2);
  const numbers = [...native(fabric).sessions].map(([number, { role }]) => [role, number] as const);
  return Object.fromEntries(numbers) as { client: number; server: number };
}
const up = (session: number) => ({ kind: EvKind.sessionUp, session });
const down = (session: number) => ({ kind: EvKind.sessionDown, session });

/** Native code reports closed sessions as down until everything has ended. */
async function ended(...ends: Promise<void>[]): Promise<void> {
  let open = true;
  void Promise.all(ends).then(() => {
    open = false;
  });
  while (open) {
    for (const each of natives.values()) each.endClosed();
    await turn();
  }
}
afterEach(() => ended(channel.close(), server.shutdown({ graceMs: 0 })));

describe('a session', () => {
  test('is connected when native code reports it, not before', async () => {
    const ready = open(['shm']);
    const { client } = await connecting('shm');
    for (let i = 0; i < 10; ++i) await turn();
    expect(channel.state).toBe('connecting');
    native('shm').deliver(up(client));
    await ready;
    expect(channel.session).toMatchObject({
      fabric: 'shm',
      device: 'fake',
      security: 'none',
      exposure: 'window',
    });
    expect(lines[0]).toMatch(/; tcp: not requested$/);
    await until(() => server.sessions.length === 1);
    expect(server.sessions[0]).toMatchObject({ fabric: 'shm', peer: /^client \(pid \d+\)$/ });
  });

  test('that cannot be connected leads to the next fabric, and one line on each side has the reason', async () => {
    const ready = open(['verbs', 'shm']);
    const first = await connecting('verbs');
    native('verbs').sessionErrorText = 'cannot connect: nobody answers';
    native('verbs').deliver(down(first.client));
    const second = await connecting('shm');
    // The server's half of the first attempt ends now, and must not end the connection with it.
    native('verbs').endClosed();
    native('shm').deliver(up(second.client), up(second.server));
    await ready;
    await until(() => serverLines.length === 1);
    expect(channel.fabric).toBe('shm');
    const line =
      'fabric shm (fake, window) chosen; verbs: cannot connect: nobody answers; tcp: not requested';
    expect(lines).toEqual([`server: ${line}`]);
    expect(serverLines).toEqual([`client: ${line}`]);
    expect(server.sessionCount).toBe(1);
  });

  test('that cannot be connected, without another fabric, causes an error with the reason', async () => {
    const ready = open(['verbs']);
    const { client } = await connecting('verbs');
    native('verbs').sessionErrorText = 'cannot connect: nobody answers';
    native('verbs').deliver(down(client));
    await expect(ready).rejects.toMatchObject({
      code: Status.UNAVAILABLE,
      message: /cannot connect to server: no fabric connects \(verbs: cannot connect: nobody answers\)/,
    });
    expect(channel.state).toBe('failing');
    native('verbs').endClosed();
    await until(() => server.sessionCount === 0 && serverLines.length > 0);
    expect(serverLines.join()).toMatch(/no fabric in common connects \(verbs: .+nobody answers\)/);
  });

  test('that the server refuses during the attempt causes an error with that refusal', async () => {
    const ready = open(['verbs']);
    const { client } = await connecting('verbs');
    // A server with too many sessions behaves in this way: the queue pair ends together with the connection.
    const message = 'nothing was received for 500 ms while other handshakes wait';
    serverEnd.end(encodeFrame({ type: 'refusal', code: Status.RESOURCE_EXHAUSTED, message }));
    native('verbs').sessionErrorText = 'cannot open /proc/1/fd/5: No such file or directory';
    native('verbs').deliver(down(client));
    await expect(ready).rejects.toMatchObject({
      code: Status.RESOURCE_EXHAUSTED,
      rawMessage: `cannot connect to server: the server refused the connection: ${message}`,
    });
  });

  test('that never connects ends with the attempt', async () => {
    const ready = open(['verbs', 'shm'], { connectTimeoutMs: 50 });
    const { client } = await connecting('verbs');
    await expect(ready).rejects.toThrow(/option connectTimeoutMs of the channel/);
    expect(native('verbs').closes.map(({ session }) => session)).toContain(client);
    await until(() => native('verbs').closes.length === 2);
  });

  test('that is lost on the server before the client is ready ends at the client, too', async () => {
    const ready = open(['shm']);
    const sessions = await connecting('shm');
    native('shm').deliver(down(sessions.server));
    native('shm').deliver(up(sessions.client));
    await ready;
    await until(() => channel.state === 'idle' || native('shm').closes.length > 0);
    native('shm').endClosed();
    await until(() => channel.state === 'idle');
  });

  test('that is connected and lost in one batch counts as lost', async () => {
    const ready = open(['shm']);
    const { client } = await connecting('shm');
    native('shm').deliver(up(client), down(client));
    await ready;
    await until(() => channel.state === 'idle');
  });

  test('that cannot be connected fails the calls that wait for it, unsent', async () => {
    void open(['verbs']);
    const call = createClient(EchoDefinition, channel).echo({});
    const { client } = await connecting('verbs');
    native('verbs').deliver(down(client));
    const error = await call.catch((e: RpcError) => e);
    expect(error).toBeInstanceOf(RpcError);
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
  });
});
