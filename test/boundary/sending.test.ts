/** Tests that a large message in transfer is found by its token among any number of other messages. */
import { describe, expect, test } from 'vitest';
import { type Entry, Sending } from '../../runtime/boundary/outgoing/sending.ts';

class Message implements Entry<Message> {
  token = 0;
  next: Message | undefined;
}

describe('messages that are being sent', () => {
  const filled = (tokens: readonly number[]): [Sending<Message>, Map<number, Message>] => {
    const sending = new Sending<Message>();
    const all = new Map(tokens.map((token) => [token, new Message()]));
    for (const [token, message] of all) sending.add(token, message);
    return [sending, all];
  };

  test.each([
    ['one after the other', Array.from({ length: 1000 }, (_, i) => i + 1)],
    ['of one bucket', [7, 7 + 256, 7 + 512, 7 + 1024, 0x7fff_ff07]],
    ['around the end of all tokens', [0x7fff_fffe, 0x7fff_ffff, 1, 2]],
  ])('with tokens %s come out once, in any order', (_, tokens) => {
    for (const order of [tokens, tokens.toReversed(), [...tokens].sort((a, b) => (a % 3) - (b % 3))]) {
      const [sending, all] = filled(tokens);
      expect(sending.size).toBe(tokens.length);
      for (const token of order) {
        expect(sending.take(token)).toBe(all.get(token));
        expect(sending.take(token)).toBeUndefined();
      }
      expect(sending.size).toBe(0);
    }
  });

  test('unknown tokens have no effect', () => {
    const [sending] = filled([1, 257]);
    expect([sending.take(513), sending.take(2), sending.size]).toEqual([undefined, undefined, 2]);
  });

  test('are forgotten when their session has ended', () => {
    const [sending, all] = filled([1, 257, 513]);
    sending.take(257);
    expect(all.get(257)?.next).toBeUndefined();
  });
});
