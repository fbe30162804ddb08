/**
 * Tests a reader of a stream, and parts whose large messages stay at their sender until the reader waits for
 * them.
 */
import { expect, test } from 'vitest';
import { type ReaderOwner, type ReceivedPart, StreamReader } from '../../runtime/stream/stream-reader.ts';

type Told = [what: string, token: number][];

function ownerOf(told: Told): ReaderOwner {
  return {
    onFirstRead: () => undefined,
    onConsumed: () => undefined,
    onWanted: (token) => void told.push(['wanted', token]),
    onUnwanted: (token) => void told.push(['unwanted', token]),
    onLeft: () => undefined,
    onEnd: () => undefined,
  };
}

const part = (token: number): ReceivedPart => ({ messages: [{}], last: false, token });

test('an announced message is fetched when the application waits for it, and not before', async () => {
  const told: Told = [];
  const reader = new StreamReader(ownerOf(told), true);
  reader.announce(1, 21);
  reader.arrive(0, part(0));
  await reader.next();
  expect(told).toEqual([]);
  const second = reader.next();
  expect(told).toEqual([['wanted', 21]]);
  const third = reader.next();
  reader.announce(3, 23);
  reader.announce(2, 22);
  expect(told).toHaveLength(1);
  reader.arrive(1, part(1));
  expect((await second).done).toBe(false);
  expect(told).toEqual([
    ['wanted', 21],
    ['wanted', 22],
  ]);
  reader.arrive(2, part(2));
  expect((await third).done).toBe(false);
  await reader.return();
  reader.announce(4, 24);
  expect(told.slice(2)).toEqual([
    ['unwanted', 23],
    ['unwanted', 24],
  ]);
});

test('a reader waits for the next message, and for the first part from the start', () => {
  const reader = new StreamReader(ownerOf([]), true);
  expect([0, 1].map((sequence) => reader.waitsFor(sequence))).toEqual([true, false]);
  reader.arrive(0, part(0));
  void reader.next();
  expect(reader.waitsFor(1)).toBe(false);
  void reader.next();
  expect([0, 1, 2].map((sequence) => reader.waitsFor(sequence))).toEqual([false, true, false]);
});
