/**
 * Tests the limits of attempts to connect to one address: how many run at once, and what happens to the
 * others. The test moves the clock.
 */
import { createClient } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { connectingMax } from '../../runtime/client/connections/limits.ts';
import { Turns } from '../../runtime/client/connections/turns.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, caught, turn, until } from './bed.ts';

describe('turns', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  const limitMs = 5000;
  const never = new AbortController().signal;
  const full = (turns: Turns, address = 'a'): void => {
    for (let i = 0; i < connectingMax; i++) expect(turns.enter(address, limitMs, never)).toBeUndefined();
  };
  /** Waits for a turn, and records the result in `log`. */
  const wait = (turns: Turns, name: string, log: string[], signal = never): void => {
    turns.enter('a', limitMs, signal)!.then(
      () => log.push(name),
      (error: Error) => log.push(`${name}: ${error.message}`),
    );
  };

  test('are given in order, one for each attempt that has ended, whatever its result', async () => {
    const turns = new Turns();
    const log: string[] = [];
    full(turns);
    for (const name of ['first', 'second', 'third']) wait(turns, name, log);
    await turn();
    expect(log).toEqual([]);
    turns.leave('a', false);
    await turn();
    expect(log).toEqual(['first']);
    turns.leave('a', true);
    await turn();
    expect(log).toEqual(['first', 'second']);
  });

  test('are separate for each address, and removed for an address without attempts', () => {
    const turns = new Turns();
    full(turns);
    full(turns, 'b');
    for (let i = 0; i < connectingMax; i++) turns.leave('a', false);
    full(turns);
    turns.leave('nobody', true);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('an attempt that is cancelled leaves the queue', async () => {
    const turns = new Turns();
    const log: string[] = [];
    const abandon = new AbortController();
    full(turns);
    wait(turns, 'first', log, abandon.signal);
    wait(turns, 'second', log);
    abandon.abort(new Error('closed'));
    turns.leave('a', false);
    await turn();
    expect(log).toEqual(['first: closed', 'second']);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('an attempt waits as long as other attempts connect, and fails when none does', async () => {
    const turns = new Turns();
    const log: string[] = [];
    full(turns);
    for (const name of ['first', 'second', 'third']) wait(turns, name, log);
    await vi.advanceTimersByTimeAsync(limitMs - 1);
    turns.leave('a', true);
    await vi.advanceTimersByTimeAsync(limitMs);
    expect(log).toEqual(['first']);
    turns.leave('a', false);
    await vi.advanceTimersByTimeAsync(limitMs);
    expect(log).toEqual([
      'first',
      'second',
      `third: ${connectingMax} attempts at this address are under way, and none has connected within 5000 ms (option connectTimeoutMs of the channel)`,
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('channels', () => {
  let bed: Bed;
  beforeEach(() => {
    // In this test no limit ever passes, even if a busy machine takes long to connect.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    bed = new Bed();
  });
  afterEach(async () => {
    await bed.close();
    vi.useRealTimers();
  });

  test('that try an address without an answer do not delay other channels, and can be closed', async () => {
    bed.start('good');
    bed.mute.add('mute');
    const stuck = Array.from({ length: connectingMax + 8 }, () => bed.channel(['mute']));
    const ends = stuck.map((channel) => caught(channel.ready()));
    await until(() => bed.dialled.length === connectingMax);
    const { text } = await createClient(EchoDefinition, bed.channel(['good'])).fetch({});
    expect(text).toBe('good');
    expect(bed.dialled.filter((address) => address === 'mute')).toHaveLength(connectingMax);
    await Promise.all(stuck.map((channel) => channel.close()));
    expect((await Promise.all(ends)).every((error) => /closed/.test(error.message))).toBe(true);
    expect(bed.dialled.filter((address) => address === 'mute')).toHaveLength(connectingMax);
  });

  test('all connect, although many more exist than may connect at once', async () => {
    bed.start('good');
    const numbers = Array.from({ length: 3 * connectingMax }, (_, number) => number);
    const answers = await Promise.all(
      numbers.map(async (number) => {
        const client = createClient(EchoDefinition, bed.channel(['good']));
        return (await client.echo({ number })).number;
      }),
    );
    expect(answers).toEqual(numbers);
  });
});
