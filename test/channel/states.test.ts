/**
 * Tests the states of a connection as its channel shows them: pauses, calls that wait, calls that fail at
 * once, and the check after a silence.
 */

import { type ChannelOptions, type ChannelState, createClient, type RpcError, Status } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { replaceClock } from '../../runtime/clock.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, caught, turn, until } from './bed.ts';

let bed: Bed;
beforeEach(() => {
  bed = new Bed();
});
afterEach(() => bed.close());

/** This time is so long that no pause ends within a test. */
const longMs = 600_000;

describe('states', () => {
  test('are idle, connecting, ready, idle when the server leaves, and closed, each with an event', async () => {
    bed.start('a');
    const channel = bed.channel(['a']);
    const seen: ChannelState[] = [channel.state];
    channel.on('state', (state) => seen.push(state));
    await createClient(EchoDefinition, channel).echo({});
    await bed.stop('a');
    await until(() => channel.state === 'idle');
    await channel.close();
    await turn();
    expect(seen).toEqual(['idle', 'connecting', 'ready', 'idle', 'closed']);
  });

  test.each<[string, ChannelOptions, string[]]>([
    ['one address', {}, ['a:1']],
    ['several addresses', {}, ['a:1', 'b:1']],
    ['the first reachable address', { loadBalancing: 'pick-first' }, ['a:1', 'b:1']],
  ])('with a resolver the channel connects without becoming idle: %s', async (_, options, addresses) => {
    bed.start('a:1', 'b:1');
    const channel = bed.channel({ resolve: async () => addresses }, options);
    const seen: ChannelState[] = [];
    channel.on('state', (state) => seen.push(state));
    await channel.ready();
    await turn();
    expect(seen).toEqual(['connecting', 'ready']);
  });

  test('a resolver that fails at first is no reason to become idle either', async () => {
    bed.start('a:1');
    let asked = 0;
    const resolve = async (): Promise<string[]> => {
      if (++asked === 1) throw new Error('the registry is away');
      return ['a:1'];
    };
    const channel = bed.channel({ resolve }, { backoffMs: 1, resolveMinMs: 0 });
    const seen: ChannelState[] = [];
    channel.on('state', (state) => seen.push(state));
    await createClient(EchoDefinition, channel).echo({}, { waitForReady: true });
    await turn();
    expect(seen).toEqual(['connecting', 'failing', 'connecting', 'ready']);
  });

  test('failing begins with the error, and ends with the pause', async () => {
    const channel = bed.channel(['a'], { backoffMs: 1 });
    const failures: (RpcError | undefined)[] = [];
    channel.on('state', (state, error) => state === 'failing' && failures.push(error));
    await caught(channel.ready());
    await until(() => channel.state === 'idle');
    expect(failures).toHaveLength(1);
    expect(failures[0]).toMatchObject({ code: Status.UNAVAILABLE, message: /nobody listens at a/ });
    expect(channel.addresses[0]?.error).toBe(failures[0]);
  });

  test('a listener that throws causes a warning, and the others are notified', async () => {
    bed.start('a');
    const channel = bed.channel(['a']);
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const seen: ChannelState[] = [];
    channel.once('state', () => {
      throw new Error('listener');
    });
    channel.once('state', async () => {
      throw new Error('listener, later');
    });
    channel.on('state', (state) => seen.push(state));
    await channel.ready();
    await until(() => warned.mock.calls.length === 2);
    for (const [text] of warned.mock.calls) expect(text).toBe("a listener of channel.on('state') has failed");
    warned.mockRestore();
    expect(channel.state).toBe('ready');
    expect(seen).toEqual(['connecting', 'ready']);
  });
});

test('a channel that is closed in the turn of its first call neither connects nor waits for an answer', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    bed.mute.add('a');
    const channel = bed.channel(['a']);
    const call = caught(createClient(EchoDefinition, channel).echo({}));
    await channel.close();
    expect(await call).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    expect(bed.dialled).toEqual([]);
  } finally {
    vi.useRealTimers();
  }
});

describe('while a channel is failing', () => {
  test('calls fail at once, unsent, with the error of the last attempt, and cause no other attempt', async () => {
    const channel = bed.channel(['a'], { backoffMs: longMs });
    const client = createClient(EchoDefinition, channel);
    const first = await caught(client.echo({}));
    bed.start('a');
    const second = await caught(client.echo({}));
    for (const error of [first, second]) {
      expect(error).toMatchObject({
        code: Status.UNAVAILABLE,
        processed: 'no',
        message: /Echo: cannot connect/,
      });
    }
    expect(bed.dialled).toEqual(['a']);
  });

  test('ready() makes an attempt nevertheless', async () => {
    const channel = bed.channel(['a'], { backoffMs: longMs });
    await caught(channel.ready());
    bed.start('a');
    await channel.ready();
    expect(channel.state).toBe('ready');
  });

  test('the first call after the pause makes the next attempt', async () => {
    const channel = bed.channel(['a'], { backoffMs: 1 });
    const client = createClient(EchoDefinition, channel);
    await caught(client.echo({}));
    bed.start('a');
    await until(() => channel.state === 'idle');
    expect(bed.dialled).toEqual(['a']);
    expect((await client.echo({ number: 5 })).number).toBe(5);
  });
});

describe('waitForReady', () => {
  test('a call with the option waits through failed attempts, and other calls fail', async () => {
    const channel = bed.channel(['a'], { backoffMs: 1, backoffMaxMs: 2 });
    const client = createClient(EchoDefinition, channel);
    const patient = client.echo({ number: 7 }, { waitForReady: true });
    expect(await caught(client.echo({}))).toMatchObject({ code: Status.UNAVAILABLE });
    await until(() => bed.dialled.length > 3);
    bed.start('a');
    expect((await patient).number).toBe(7);
  });

  test('a call waits until its deadline or its signal', async () => {
    const channel = bed.channel(['a'], { backoffMs: 1, backoffMaxMs: 2 });
    const client = createClient(EchoDefinition, channel, { '*': { waitForReady: true } });
    const controller = new AbortController();
    const late = caught(client.echo({}, { timeoutMs: 20 }));
    const given = caught(client.echo({}, { signal: controller.signal }));
    const told = await late;
    expect(told).toMatchObject({ code: Status.DEADLINE_EXCEEDED, processed: 'no' });
    // The cause is the reason for which the call has waited, because that is what the user must repair.
    expect(told.cause).toMatchObject({ code: Status.UNAVAILABLE });
    expect(told.message).toContain((told.cause as Error).message);
    controller.abort();
    expect(await given).toMatchObject({ code: Status.CANCELLED, processed: 'no' });
  });

  test('the value of a call overrides the value of its client, and only true and false are accepted', async () => {
    const channel = bed.channel(['a'], { backoffMs: longMs });
    const client = createClient(EchoDefinition, channel, { echo: { waitForReady: true } });
    expect(await caught(client.echo({}, { waitForReady: false }))).toMatchObject({
      code: Status.UNAVAILABLE,
    });
    await expect(client.echo({}, { waitForReady: 1 as unknown as boolean })).rejects.toThrow(TypeError);
    expect(() => createClient(EchoDefinition, channel, { echo: { waitForReady: 1 as never } })).toThrow(
      /waitForReady of echo/,
    );
  });

  test('a waiting call ends with the channel', async () => {
    const channel = bed.channel(['a'], { backoffMs: longMs });
    const call = caught(createClient(EchoDefinition, channel).echo({}, { waitForReady: true }));
    await until(() => channel.state === 'failing');
    await channel.close();
    expect(await call).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
  });
});

describe('ready()', () => {
  test('rejects with the last failure when its time is over', async () => {
    const channel = bed.channel(['a'], { backoffMs: 1, backoffMaxMs: 5 });
    const error = await caught(channel.ready({ timeoutMs: 500 }));
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    expect(error.message).toMatch(/bed: not ready within 500 ms: cannot connect to a: nobody listens at a/);
    expect(bed.dialled.length).toBeGreaterThan(1);
  });

  test('is not delayed by an attempt that never ends', async () => {
    bed.mute.add('a');
    const channel = bed.channel(['a']);
    const error = await caught(channel.ready({ timeoutMs: 10 }));
    expect(error.message).toMatch(/not ready within 10 ms: the attempt to connect has not ended/);
  });

  test('ends with the channel', async () => {
    bed.mute.add('a');
    const channel = bed.channel(['a']);
    const ready = caught(channel.ready({ timeoutMs: longMs }));
    await channel.close();
    expect(await ready).toMatchObject({ code: Status.UNAVAILABLE });
    expect(await caught(channel.ready())).toMatchObject({ code: Status.UNAVAILABLE });
  });
});

describe('after a silence', () => {
  beforeEach(() => {
    vi.useFakeTimers({
      toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout', 'performance'],
    });
    replaceClock(() => performance.now());
  });
  afterEach(() => {
    replaceClock(undefined);
    vi.useRealTimers();
  });

  /** Returns a channel that made a call and has been idle for a second since. */
  async function silent(options: ChannelOptions) {
    bed.start('a');
    const channel = bed.channel(['a'], options);
    const client = createClient(EchoDefinition, channel);
    await client.echo({});
    vi.advanceTimersByTime(1000);
    const seen: ChannelState[] = [];
    channel.on('state', (state) => seen.push(state));
    return { client, seen };
  }

  test('the connection is tried before a call uses it', async () => {
    const { client, seen } = await silent({ verifyAfterMs: 500 });
    expect((await client.echo({ number: 3 })).number).toBe(3);
    expect(seen).toEqual(['verifying', 'ready']);
    expect(bed.dialled).toEqual(['a']);
  });

  test('a connection without a sign of life is replaced, and the call uses the new one', async () => {
    const { client, seen } = await silent({ verifyAfterMs: 500 });
    bed.far('a').pause();
    const call = client.echo({ number: 3 });
    vi.advanceTimersByTime(1999);
    await turn();
    expect(seen).toEqual(['verifying']);
    vi.advanceTimersByTime(1);
    expect((await call).number).toBe(3);
    expect(seen).toEqual(['verifying', 'idle', 'connecting', 'ready']);
    expect(bed.dialled).toEqual(['a', 'a']);
  });

  test('the connection is not tried before the requested time', async () => {
    const { client, seen } = await silent({ verifyAfterMs: 2000 });
    await client.echo({});
    expect(seen).toEqual([]);
  });
});
