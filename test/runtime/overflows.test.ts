/**
 * Tests messages that do not fit a slot, sent one after another. The runtime learns not to encode such
 * messages into a slot first. The messages arrive unchanged, independent of the next sizes.
 */
import { createClient } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { EchoDefinition } from './gen/echo.rdma.ts';
import { openPair, type Pair, pairWays } from './pair.ts';

let pair: Pair | undefined;
afterEach(async () => {
  await pair?.close();
  pair = undefined;
});

describe.each(pairWays)('%s', (way) => {
  async function open() {
    pair = await openPair(way, (server) => server.add(EchoDefinition, { echo: ({ text }) => ({ text }) }));
    const { echo } = createClient(EchoDefinition, pair.channel);
    /** Returns how often the text of the request was read. */
    return async (length: number): Promise<number> => {
      let reads = 0;
      const text = String.fromCharCode(97 + (length % 26)).repeat(length);
      const answer = await echo({
        get text() {
          reads++;
          return text;
        },
      });
      expect(answer.text === text, `${length} characters`).toBe(true);
      return reads;
    };
  }

  test.each([
    ['the size of bulk transfers', 200_000],
    ['the size of segments', 30_000],
  ])(
    'messages of %s are tried in a slot four times, and again when they have become small',
    async (_, length) => {
      const read = await open();
      // Values that are read in the first calls of a method would also be counted.
      for (let i = 0; i < 200; i++) await read(10);
      const small = await read(10);
      const tried = await read(length);
      for (let i = 0; i < 4; i++) await read(length);
      const untried = await read(length);
      expect(untried).toBe(tried - 1);
      await read(10);
      expect(await read(10)).toBe(small);
      expect(await read(length)).toBe(tried);
    },
  );

  test('messages of any sizes arrive in any order', async () => {
    const read = await open();
    const sizes = [
      40_000, 40_000, 40_000, 40_000, 40_000, 0, 16_000, 17_300, 17_400, 8_100, 200_000, 1, 30_000,
    ];
    for (const size of [...sizes, ...sizes.toReversed()]) await read(size);
  });
});
