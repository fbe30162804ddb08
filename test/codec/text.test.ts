/** Strings of every short length: they are moved in pieces of 8, 4 and fewer characters, and none may be lost between the pieces. */
import { describe, expect, it } from 'vitest';
import { Source } from '../../runtime/codec/source.ts';
import { readUtf8, writeShortAscii } from '../../runtime/codec/text.ts';

describe('short strings', () => {
  const lengths = Array.from({ length: 41 }, (_, length) => length);
  it.each(lengths)('of %d characters come back whole', (length) => {
    const text = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'.slice(0, length);
    const memory = new Uint8Array(64);
    const end = writeShortAscii(memory, 3, text);
    const source = new Source();
    source.reset(memory);
    expect(readUtf8(source, 3, end)).toBe(text);
  });
});
