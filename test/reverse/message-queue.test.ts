/**
 * What waits to go into a stream, both ends of it by hand: what is counted, in every way in which a message
 * leaves, and the second time as the first.
 */
import { expect, test } from 'vitest';
import { MessageQueue } from '../../runtime/reverse/message-queue.ts';

interface Message {
  readonly name: string;
  readonly message?: Uint8Array;
  readonly metadata?: Uint8Array;
}
const message = (name: string): Message => ({
  name,
  message: new Uint8Array(100),
  metadata: new Uint8Array(10),
});

test.each<[string, (queue: MessageQueue<Message>, all: readonly Message[]) => unknown]>([
  ['taken by the stream', async (queue, all) => void (await Promise.all(all.map(() => queue.next())))],
  ['taken back', (queue, all) => all.map((each) => queue.remove(each))],
  [
    'taken back twice, or when they were taken',
    async (queue, all) => {
      await queue.next();
      for (const each of [...all, ...all]) queue.remove(each);
    },
  ],
])('messages that are %s are counted no more', async (_, leave) => {
  const queue = new MessageQueue<Message>();
  for (let round = 1; round <= 3; ++round) {
    const all = ['a', 'b', 'c'].map(message);
    for (const each of all) queue.push(each);
    expect([round, queue.size, queue.bytes]).toEqual([round, 3, 330]);
    let drained = false;
    const wait = queue.drained().then(() => {
      drained = true;
    });
    expect(drained).toBe(false);
    await leave(queue, all);
    await wait;
    expect([round, queue.size, queue.bytes]).toEqual([round, 0, 0]);
  }
});

test('a message that somebody waits for is never counted, and whoever waited is served in order', async () => {
  const queue = new MessageQueue<Message>();
  const taken = [queue.next(), queue.next()];
  for (const name of ['a', 'b']) {
    queue.push(message(name));
    expect([queue.size, queue.bytes]).toEqual([0, 0]);
  }
  expect((await Promise.all(taken)).map(({ value }) => value.name)).toEqual(['a', 'b']);
});

test('a stream that leaves takes everything with it, and nothing comes behind it', async () => {
  const queue = new MessageQueue<Message>();
  for (const name of ['a', 'b']) queue.push(message(name));
  const drained = queue.drained();
  await queue.return();
  await drained;
  queue.push(message('c'));
  expect([queue.size, queue.bytes, queue.ended, await queue.next()]).toEqual([
    0,
    0,
    true,
    { value: undefined, done: true },
  ]);
});
