/**
 * Tests which parts the window of a reader accepts before their turn, at the edge of the window and after the
 * window has moved.
 */
import { expect, test } from 'vitest';
import { streamParts } from '../../runtime/limits.ts';
import { type ReceivedPart, StreamReader } from '../../runtime/stream/stream-reader.ts';

const nothing = () => undefined;
const part = (token: number): ReceivedPart => ({ messages: [token * 10], last: false, token });
const readerOf = (): StreamReader =>
  new StreamReader(
    {
      onFirstRead: nothing,
      onConsumed: nothing,
      onWanted: nothing,
      onUnwanted: nothing,
      onLeft: nothing,
      onEnd: nothing,
    },
    true,
  );

// A part beyond the window would lie in the position of the next part, which has not come. Only the window
// refuses this part.
test.each([0, 1, streamParts, 3 * streamParts + 5])(
  'a part from too far ahead, with %d read',
  async (read) => {
    const reader = readerOf();
    for (let sequence = 0; sequence < read; ++sequence) {
      expect(reader.arrive(sequence, part(sequence))).toBe(true);
      expect(await reader.next()).toEqual({ value: sequence * 10, done: false });
    }
    const beyond = read + streamParts;
    for (const sequence of [beyond, beyond + 1, beyond + 2 ** 31, read - 1])
      expect([sequence, reader.arrive(sequence >>> 0, part(sequence))]).toEqual([sequence, false]);
    expect(reader.arrive(beyond - 1, part(beyond - 1))).toBe(true);
    expect(reader.arrive(read, part(read))).toBe(true);
    expect(await reader.next()).toEqual({ value: read * 10, done: false });
    // The window has moved by one step.
    expect(reader.arrive(beyond, part(beyond))).toBe(true);
  },
);
