/**
 * Tests the result of a handler's promise. Exactly one of two functions is called, with the handler's call.
 */
import { describe, expect, test } from 'vitest';
import { PendingHandlers } from '../../runtime/server/pending-handlers.ts';
import type { ServerCall } from '../../runtime/server/server-call.ts';

const turn = (): Promise<void> => new Promise((done) => setImmediate(done));

function bed(): { pending: PendingHandlers; heard: unknown[]; call: (name: string) => ServerCall } {
  const heard: unknown[] = [];
  const pending = new PendingHandlers(
    (call, response) => heard.push([call.method, 'answers', response]),
    (call, error) => heard.push([call.method, 'fails', error]),
  );
  return { pending, heard, call: (name) => ({ method: name }) as ServerCall };
}

describe('handlers under way', () => {
  test('each handler ends with its own call, in any order', async () => {
    const { pending, heard, call } = bed();
    const settles: (() => void)[] = [];
    for (let i = 0; i < 10; i++) {
      const promise = new Promise((resolve, reject) =>
        settles.push(() => (i % 2 === 0 ? resolve(i) : reject(i))),
      );
      pending.add(call(`call ${i}`), promise);
    }
    for (const settle of settles.toReversed()) settle();
    await turn();
    expect(heard).toEqual(
      Array.from({ length: 10 }, (_, i) => [`call ${9 - i}`, i % 2 === 1 ? 'answers' : 'fails', 9 - i]),
    );
  });

  test('an entry is reused, even while another call is in progress', async () => {
    const { pending, heard, call } = bed();
    let last: (value: string) => void = () => {};
    pending.add(
      call('long'),
      new Promise((resolve) => {
        last = resolve;
      }),
    );
    for (let i = 0; i < 3; i++) {
      pending.add(call(`short ${i}`), Promise.resolve('now'));
      await turn();
    }
    last('at last');
    await turn();
    expect(heard).toEqual([
      ['short 0', 'answers', 'now'],
      ['short 1', 'answers', 'now'],
      ['short 2', 'answers', 'now'],
      ['long', 'answers', 'at last'],
    ]);
  });

  class Odd extends Promise<unknown> {}

  test.each<[string, () => Promise<unknown>, unknown[]]>([
    ['of a subclass', () => Odd.resolve('kind'), ['answers', 'kind']],
    [
      'with a `then` of its own, which nobody looks at',
      // biome-ignore lint/suspicious/noThenProperty: what it is about
      () => Object.assign(Promise.resolve('kind'), { then: () => 'never' }),
      ['answers', 'kind'],
    ],
    [
      'whose subclass has a `then` that throws',
      () =>
        Object.assign(Odd.resolve('kind'), {
          // biome-ignore lint/suspicious/noThenProperty: what it is about
          then: () => {
            throw 'unkind';
          },
        }),
      ['fails', 'unkind'],
    ],
    [
      'whose constructor throws',
      () =>
        Object.defineProperty(Promise.resolve('kind'), 'constructor', {
          get: () => {
            throw 'unkind';
          },
        }),
      ['fails', 'unkind'],
    ],
  ])('a promise %s', async (_, make, expected) => {
    const { pending, heard, call } = bed();
    pending.add(call('call'), make());
    await turn();
    expect(heard).toEqual([['call', ...expected]]);
  });
});
