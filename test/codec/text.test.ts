/**
 * Tests strings of every short length. Short strings are copied in groups of 8, 4 and fewer characters, and
 * no character may be lost between the groups.
 */
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { Source } from '../../runtime/codec/memory/source.ts';
import { loopCharsMax, readUtf8, writeShort } from '../../runtime/codec/primitives/text.ts';
import { runs } from '../extent.ts';
import { Tree } from './gen/everything.rdma.ts';

describe('short strings', () => {
  const lengths = Array.from({ length: loopCharsMax + 1 }, (_, length) => length);
  it.each(lengths)('of %d characters are decoded unchanged', (length) => {
    const text = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'.slice(0, length);
    const memory = new Uint8Array(64);
    const end = writeShort(memory, 3, text);
    const source = new Source();
    source.reset(memory);
    expect(readUtf8(source, 3, end)).toBe(text);
  });
});

describe('short strings that are not ASCII', () => {
  const parts = ['a', 'é', '漢', '😁', '\ud83d', '\ude01', '\u0000', '\uffff'];
  const texts = parts.flatMap((a) => parts.flatMap((b) => [a + b, `${a}bc${b}`, `abcd${a}${b}${a}`]));
  it.each(texts.map((text) => [JSON.stringify(text), text] as const))('%s', (_name, text) => {
    const memory = new Uint8Array(64);
    const end = writeShort(memory, 3, text);
    expect(Buffer.from(memory.subarray(3, end))).toEqual(Buffer.from(text));
  });
});

describe('strings around the longest that the loop writes', () => {
  const lengths = [loopCharsMax - 1, loopCharsMax, loopCharsMax + 1, 126, 127, 128];
  it.each(lengths.flatMap((length) => ['a', 'é', '漢'].map((each) => [length, each] as const)))(
    '%d × %s',
    (length, each) => {
      const label = each.repeat(length);
      const bytes = Tree.encode({ label });
      expect(Buffer.from(bytes.subarray(-Buffer.byteLength(label))).toString()).toBe(label);
      expect(Tree.decode(bytes).label).toBe(label);
    },
  );
});

test('short strings of any characters are encoded as by Buffer', () => {
  const part = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom('a', 'bc', 'def', '\u0000', '\u007f') },
    { weight: 3, arbitrary: fc.constantFrom('\u0080', 'é', '\u07ff', '\u0800', '漢', '\uffff', '😁') },
    { weight: 1, arbitrary: fc.constantFrom('\ud83d', '\ude01', '\udbff', '\udc00') },
  );
  const text = fc.array(part, { maxLength: loopCharsMax / 3 }).map((parts) => parts.join(''));
  const property = fc.property(text, fc.nat({ max: 5 }), (short, at) => {
    const memory = new Uint8Array(at + 3 * loopCharsMax);
    expect(Buffer.from(memory.subarray(at, writeShort(memory, at, short)))).toEqual(Buffer.from(short));
  });
  fc.assert(property, { seed: 20_261_121, numRuns: runs(2000) });
});
