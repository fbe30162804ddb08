/**
 * Tests a call that is made when the stack is exhausted: it throws or fails, and does not affect the other
 * calls of its session.
 */
import { createClient } from 'rdma-rpc';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { caught } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { openPair, type Pair, pairWays } from '../runtime/pair.ts';

let pair: Pair | undefined;
afterEach(async () => {
  vi.restoreAllMocks();
  await pair?.close();
  pair = undefined;
});

describe.each(pairWays)('%s', (way) => {
  test.each([
    ['a small request', 10],
    ['one in segments', 20_000],
    ['a large one', 200_000],
  ])('%s: nothing is sent, and its call slot serves the next one', async (_, length) => {
    pair = await openPair(way, (server) => server.add(EchoDefinition, { echo: ({ text }) => ({ text }) }));
    const { echo } = createClient(EchoDefinition, pair.channel);
    await echo({});
    // Makes the call outside of a batch of events, because a batch ends with a flush.
    await new Promise(setImmediate);
    const text = 'x'.repeat(length);
    vi.spyOn(globalThis, 'queueMicrotask').mockImplementationOnce(() => {
      throw new RangeError('Maximum call stack size exceeded');
    });
    expect(await caught(echo({ text }))).toMatchObject({ processed: 'no' });
    expect(queueMicrotask).toHaveBeenCalled();
    const answers = await Promise.all(Array.from({ length: 300 }, (_, i) => echo({ text: `${i}` })));
    expect(answers.map((answer) => answer.text)).toEqual(answers.map((_, i) => `${i}`));
  });
});
