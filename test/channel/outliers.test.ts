/**
 * The tests check which addresses count as outliers, when this is decided, and what happens to them. The test
 * moves the clock.
 */
import { type Channel, createClient } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Outliers, outliers, type Tally } from '../../runtime/client/connections/outliers.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, caught, until } from './bed.ts';

const answers = (bad: number, all = 100): Tally => ({ answers: all, bad });

describe('outliers', () => {
  test.each<[string, Tally[], number[]]>([
    ['nobody', [], []],
    ['all well', [0, 0, 0, 0, 0].map((bad) => answers(bad)), []],
    ['all bad', [100, 100, 100, 100, 100].map((bad) => answers(bad)), []],
    ['one bad of five', [0, 0, 100, 0, 0].map((bad) => answers(bad)), [2]],
    ['one bad of four: too few to compare', [0, 0, 100, 0].map((bad) => answers(bad)), []],
    ['one of five has too few answers', [...[0, 0, 100, 0].map((bad) => answers(bad)), answers(0, 99)], []],
    ['a bad one with too few answers', [...[0, 0, 0, 0, 0].map((bad) => answers(bad)), answers(99, 99)], []],
    ['two bad of five: within what is usual', [0, 100, 100, 0, 0].map((bad) => answers(bad)), []],
    ['two bad of ten', [0, 0, 0, 0, 0, 0, 0, 0, 90, 95].map((bad) => answers(bad)), [8, 9]],
    ['a little worse than the others, which are equal', [1, 1, 1, 1, 2].map((bad) => answers(bad)), [4]],
    ['a little worse among different ones', [1, 3, 2, 4, 5].map((bad) => answers(bad)), []],
    ['more answers, same share', [answers(50, 1000), ...[5, 5, 5, 5].map((bad) => answers(bad))], []],
  ])('%s', (_, tallies, expected) => {
    expect(outliers(tallies, 100)).toEqual(expected);
  });
});

describe('on a clock', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  test('checks once per interval while there are answers, and sleeps when there are none', () => {
    let next = answers(0);
    const ejected: number[] = [];
    let looks = 0;
    const addresses = [0, 1, 2, 3, 4].map((place) => ({
      takeTally: () => {
        if (place === 0) ++looks;
        return place === 3 ? answers(next.answers, next.answers) : next;
      },
      eject: () => ejected.push(place),
    }));
    const watch = new Outliers(
      { settings: { outlierDetection: { intervalMs: 10_000, answersMin: 100 } } },
      () => addresses,
    );
    expect(vi.getTimerCount()).toBe(0);
    watch.wake();
    watch.wake();
    vi.advanceTimersByTime(9_999);
    expect(looks).toBe(0);
    vi.advanceTimersByTime(1);
    expect([looks, ejected]).toEqual([1, [3]]);
    vi.advanceTimersByTime(10_000);
    expect(looks).toBe(2);
    next = answers(0, 0);
    vi.advanceTimersByTime(10_000);
    expect([looks, vi.getTimerCount()]).toEqual([3, 0]);
    watch.wake();
    watch.stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('never checks with interval 0', () => {
    new Outliers({ settings: { outlierDetection: { intervalMs: 0, answersMin: 1 } } }, () => []).wake();
    expect(vi.getTimerCount()).toBe(0);
  });

  describe('a channel', () => {
    const names = ['a:1', 'b:1', 'c:1', 'd:1', 'e:1', 'f:1'];
    let bed: Bed;
    beforeEach(() => {
      bed = new Bed();
    });
    afterEach(() => bed.close());

    async function opened(options: object): Promise<Channel> {
      bed.start(...names);
      const channel = bed.channel(names, {
        loadBalancing: 'round-robin',
        outlierDetection: { badAnswersMax: 0, answersMin: 10, ...options },
      });
      await channel.ready();
      await until(() => channel.addresses.every(({ state }) => state === 'ready'));
      return channel;
    }
    const left = (channel: Channel): string[] =>
      channel.addresses.flatMap(({ address, state }) => (state === 'ejected' ? [address] : []));

    /**
     * Makes this number of calls, and returns the names of the servers that answered. `fetch` answers with
     * the name of the server. A server that is to fail answers with INTERNAL instead.
     */
    async function ask(channel: Channel, calls: number, failing: readonly string[]): Promise<Set<string>> {
      const client = createClient(EchoDefinition, channel);
      const who = new Set<string>();
      const fetch = async (): Promise<string> => (await client.fetch({})).text;
      // The order is known: the next address is the one after the address that answered last.
      const ready = channel.addresses.filter(({ state }) => state === 'ready').map(({ address }) => address);
      let turn = (ready.indexOf(await fetch()) + 1) % ready.length;
      for (let i = 0; i < calls; ++i) {
        if (failing.includes(ready[turn]!)) await caught(client.behave({ text: 'throw' }));
        else who.add(await fetch());
        turn = (turn + 1) % ready.length;
      }
      return who;
    }

    test('leaves out the address that falls behind, for ejectionMs', async () => {
      const channel = await opened({ ejectionMs: 30_000 });
      await ask(channel, 120, ['c:1']);
      expect(left(channel)).toEqual([]);
      vi.advanceTimersByTime(10_000);
      expect(left(channel)).toEqual(['c:1']);
      expect(await ask(channel, 10, [])).toEqual(new Set(['a:1', 'b:1', 'd:1', 'e:1', 'f:1']));
      vi.advanceTimersByTime(36_000);
      expect(left(channel)).toEqual([]);
    });

    test('never leaves out the last connected address, whatever it answers', async () => {
      bed.start('a:1');
      const channel = bed.channel(['a:1', 'b:1'], { outlierDetection: { badAnswersMax: 3 } });
      await channel.ready();
      const client = createClient(EchoDefinition, channel);
      for (let i = 0; i < 10; ++i) await caught(client.behave({ text: 'throw' }));
      expect(channel.addresses[0]).toMatchObject({ address: 'a:1', state: 'ready' });
    });

    test('leaves out at most a tenth of the addresses, but always one', async () => {
      const channel = await opened({ badAnswersMax: 3 });
      await ask(channel, 60, ['c:1', 'd:1']);
      expect(left(channel)).toHaveLength(1);
    });
  });
});
