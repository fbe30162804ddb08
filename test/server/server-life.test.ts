/**
 * Tests the end of single connections and of a server: by age, idleness, drain, and limits of connections.
 */

import { duplexPair } from 'node:stream';
import {
  type Channel,
  createChannel,
  createClient,
  createInProcessChannel,
  createServer,
  type InProcessOptions,
  Status,
  stats,
} from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { clientMethod } from '../../runtime/client/call/client-method.ts';
import { ClientSession } from '../../runtime/client/session/client-session.ts';
import { replaceClock } from '../../runtime/clock.ts';
import { ClientHandshake } from '../../runtime/control/handshake/client-handshake.ts';
import { Link } from '../../runtime/control/link.ts';
import { LimitedLog } from '../../runtime/core/log.ts';
import * as limits from '../../runtime/limits.ts';
import { PeerCounts } from '../../runtime/server/peer-counts.ts';
import { RpcServer } from '../../runtime/server/server.ts';
import { side } from '../control/by-hand.ts';
import { caught, turn, until } from '../outcomes.ts';
import { type EchoLog, echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  for (const close of open.splice(0).reverse()) await close();
});

describe('a connection', () => {
  let log: EchoLog;
  let channel: Channel;
  let client: ReturnType<typeof createClient<typeof EchoDefinition>>;

  beforeEach(() =>
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] }),
  );

  async function connected(options: InProcessOptions): Promise<void> {
    log = { started: 0, aborted: [] };
    channel = createInProcessChannel((server) => server.add(EchoDefinition, echoHandlers(log)), options);
    open.push(() => channel.close());
    client = createClient(EchoDefinition, channel);
    await client.echo({});
    // `ready` may still be on its way.
    await turn();
    await turn();
  }

  test.each([
    [0, 900],
    [0.5, 1000],
    [1, 1100],
  ])('lives for its age, 10 percent more or less: %d of the jitter', async (random, ageMs) => {
    vi.spyOn(Math, 'random').mockReturnValue(random);
    await connected({ connectionAgeMaxMs: 1000 });
    vi.advanceTimersByTime(ageMs - 1);
    await turn();
    expect(channel.state).toBe('ready');
    vi.advanceTimersByTime(1);
    await until(() => channel.state === 'idle');
    expect((await client.echo({ number: 3 })).number).toBe(3);
  });

  test('that has reached its age lets calls finish within the grace period; the other calls end with it', async () => {
    // The connection reaches its age after 1100 ms, and the grace period ends exactly 5000 ms later.
    vi.spyOn(Math, 'random').mockReturnValue(1);
    await connected({ connectionAgeMaxMs: 1000, connectionAgeGraceMs: 5000 });
    const hanging = caught(client.behave({ text: 'hang' }));
    await until(() => log.started === 2);
    vi.advanceTimersByTime(1100);
    await until(() => channel.state === 'idle');
    // The call uses a new connection, beside the one that is closing.
    expect((await client.echo({ number: 4 })).number).toBe(4);
    vi.advanceTimersByTime(4999);
    await turn();
    expect(log.aborted).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(await hanging).toMatchObject({
      code: Status.UNAVAILABLE,
      processed: 'maybe',
      message: expect.stringContaining('the connection has reached its age'),
    });
    expect(log.aborted).toEqual([Status.CANCELLED]);
  });

  test('is asked to leave only when it has no calls', async () => {
    await connected({ connectionIdleMaxMs: 1000 });
    const hanging = client.behave({ text: 'hang' }, { signal: AbortSignal.any([]) });
    hanging.catch(() => undefined);
    await until(() => log.started === 2);
    vi.advanceTimersByTime(10_000);
    await turn();
    expect(channel.state).toBe('ready');
    await channel.close();

    await connected({ connectionIdleMaxMs: 1000 });
    for (let i = 0; i < 10; ++i) {
      vi.advanceTimersByTime(700);
      await client.echo({});
    }
    expect(channel.state).toBe('ready');
    vi.advanceTimersByTime(1250);
    await until(() => channel.state === 'idle');
  });
});

describe('a client that has received `drain`', () => {
  let server: RpcServer;
  let link: Link;
  let finish: (() => void) | undefined;
  let call: (name: 'echo' | 'behave', text: string) => Promise<unknown>;
  let end: () => void;

  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    finish = undefined;
    server = new RpcServer(undefined, ['sim']);
    server.add(EchoDefinition, {
      echo: (r) => r,
      behave: (r) => new Promise((resolve) => (finish = () => resolve(r))),
    });
    const [near, far] = duplexPair();
    server.accept(far, 'script');
    link = new Link(near);
    const connection = await new ClientHandshake(link, { ...side, streamsMax: 0 }, 'a server').run();
    const queue = {
      waiting: { size: 0 },
      pump: () => undefined,
      pumpAfter: () => undefined,
      awaitMemory: () => false,
      requeue: () => false,
    };
    const session = new ClientSession(connection.context, connection.target, 4, queue, {
      onCallDone: () => undefined,
      onSessionLost: () => undefined,
      onSessionDown: () => undefined,
      lastWords: () => undefined,
      onConsecutiveErrors: () => undefined,
      onSilence: () => undefined,
      onRejected: () => undefined,
    });
    call = (name, text) =>
      new Promise((resolve) => {
        const method = clientMethod(EchoDefinition.methods[name], -1);
        expect(session.start(method, { text }, 0, undefined, resolve)).toBe(true);
        connection.context.outgoing.flush();
      });
    end = () => {
      link.close('drained', { type: 'bye', reason: 'drained' });
      connection.context.sessions.close(connection.target.session, 'done');
    };
  });

  test('and has sent the number of its calls gets answers to those calls, and to no others', async () => {
    const early = call('behave', 'early');
    await until(() => finish !== undefined);
    const ended = server.shutdown({ graceMs: 60_000 });
    expect(await link.receive()).toEqual({ type: 'goaway', reason: 'the server is shutting down' });
    link.send({ type: 'leaving', calls: 2 });
    expect(await link.receive()).toEqual({ type: 'goaway', reason: 'the server is shutting down', last: 2 });
    // The call is on its way for longer than the notice.
    vi.advanceTimersByTime(10 * limits.goawayNoticeMs);
    expect(await call('echo', 'second')).toMatchObject({ text: 'second' });
    expect(await caught(call('echo', 'third'))).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    finish!();
    expect(await early).toMatchObject({ text: 'early' });
    end();
    await ended;
    await until(() => stats('sim').queuePairs === 0);
  });

  test('cannot change that number with a second frame', async () => {
    const early = caught(call('behave', 'early'));
    await until(() => finish !== undefined);
    void server.shutdown({ graceMs: 60_000 });
    await link.receive();
    vi.advanceTimersByTime(limits.goawayNoticeMs);
    expect(await link.receive()).toMatchObject({ type: 'goaway', last: 1 });
    link.send({ type: 'leaving', calls: 100 });
    expect(await caught(call('echo', 'late'))).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    end();
    await early;
    await until(() => stats('sim').queuePairs === 0);
  });

  test('when it was not: its connection ends', async () => {
    link.send({ type: 'leaving', calls: 0 });
    expect(await link.receive()).toMatchObject({
      type: 'bye',
      reason: expect.stringContaining('unexpected leaving'),
    });
    end();
    await until(() => stats('sim').queuePairs === 0);
  });

  test('and continues is rejected after a second: its new call does not run, while its earlier one is answered', async () => {
    const early = call('behave', 'early');
    await until(() => finish !== undefined);

    const ended = server.shutdown({ graceMs: 60_000 });
    expect(await link.receive()).toMatchObject({ type: 'goaway' });
    // The call and the notice were on their way at the same time, and the call is served.
    expect(await call('echo', 'crossed')).toMatchObject({ text: 'crossed' });
    vi.advanceTimersByTime(limits.goawayNoticeMs);
    expect(await caught(call('echo', 'late'))).toMatchObject({
      code: Status.UNAVAILABLE,
      processed: 'no',
      message: expect.stringContaining('the server is shutting down'),
    });
    finish!();
    expect(await early).toMatchObject({ text: 'early' });
    end();
    await ended;
    await until(() => stats('sim').queuePairs === 0);
  });
});

describe('shutdown always ends', () => {
  test('a socket whose peer reads nothing is closed', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const [near, far] = duplexPair();
    // The stream never reports that it has accepted data.
    near._write = () => undefined;
    const link = new Link(near);
    link.close('enough', { type: 'bye', reason: 'enough' });
    vi.advanceTimersByTime(limits.closeTimeoutMs - 1);
    expect(near.destroyed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(near.destroyed).toBe(true);
    far.destroy();
  });
});

describe('clients that are accepted', () => {
  test('are limited in number per address, and a connection that ends makes room', async () => {
    const server = createServer({ sessionsPerPeerMax: 2 }).add(EchoDefinition, { echo: (r) => r });
    open.push(() => server.shutdown({ graceMs: 0 }));
    const address = await server.listen('127.0.0.1:0');
    const channels = [1, 2, 3].map(() => createChannel(address));
    for (const each of channels) open.push(() => each.close());
    await channels[0]!.ready();
    await channels[1]!.ready();
    expect(await caught(channels[2]!.ready())).toMatchObject({
      code: Status.RESOURCE_EXHAUSTED,
      processed: 'no',
      message: expect.stringContaining(
        '127.0.0.1 has 2 connections already (option sessionsPerPeerMax of the server)',
      ),
    });
    await channels[0]!.close();
    await channels[2]!.ready({ timeoutMs: 30_000 });
  });

  test('count separately per address, and nothing of closed connections is kept', () => {
    const counts = new PeerCounts(2);
    const socket = (): ReturnType<typeof duplexPair>[0] => duplexPair()[0];
    const first = socket();
    expect(counts.enter('10.0.0.1', first)).toBeUndefined();
    expect(counts.enter('10.0.0.1', socket())).toBeUndefined();
    expect(counts.enter('10.0.0.1', socket())).toMatchObject({ code: Status.RESOURCE_EXHAUSTED });
    const other = socket();
    expect(counts.enter('10.0.0.2', other)).toBeUndefined();
    for (let i = 0; i < 10; ++i) expect(counts.enter('', socket())).toBeUndefined();
    expect(counts.size).toBe(2);
    first.emit('close');
    other.emit('close');
    expect(counts.size).toBe(1);
    expect(counts.enter('10.0.0.1', socket())).toBeUndefined();
  });
});

describe('log lines', () => {
  afterEach(() => replaceClock(undefined));

  test('are limited to ten a second for each peer, and the tenth says that more follow', () => {
    let nowMs = 5_000;
    replaceClock(() => nowMs);
    const lines: string[] = [];
    const log = new LimitedLog((line) => lines.push(line));
    for (let i = 1; i <= 100; ++i) log.write(`loud ${i}`, '10.0.0.1');
    log.write('quiet', '10.0.0.2');
    expect(lines).toHaveLength(11);
    expect(lines[9]).toBe('loud 10 (further lines of this second are left out)');
    expect(lines[10]).toBe('quiet');
    nowMs = 6_000;
    log.write('loud again', '10.0.0.1');
    expect(lines.at(-1)).toBe('loud again');
  });

  test('share one limit when there are too many peers', () => {
    replaceClock(() => 7_000);
    let lines = 0;
    const log = new LimitedLog(() => ++lines);
    for (let i = 0; i < 10 * limits.logPeersMax; ++i) log.write('line', `peer ${i}`);
    expect(lines).toBe(limits.logPeersMax + limits.logLinesPerSecond);
  });
});
