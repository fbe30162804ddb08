/**
 * Tests the positions of values that are copied out of messages: on multiples of 64 bytes, and in shared
 * memory up to 32 KiB.
 */
import { describe, expect, it } from 'vitest';
import { copyValue } from '../../runtime/boundary/incoming/value-memory.ts';
import { loadNative } from '../../runtime/native/native.ts';

const from = Uint8Array.from({ length: 64 * 1024 }, (_, i) => i * 7);
const twice = (bytes: number): [Uint8Array, Uint8Array] => [
  copyValue(from, 5, 5 + bytes),
  copyValue(from, 9, 9 + bytes),
];

describe('a copied value', () => {
  it.each([
    // V8 keeps this value in its own heap.
    [0, false],
    [63, false],
    [64, true],
    [4096, true],
    [4097, true],
    [8000, true],
    [32 * 1024, true],
    [32 * 1024 + 1, false],
  ])('of %d bytes shares its memory: %s', (bytes, shares) => {
    // The second of two values may begin a chunk, but not both.
    const same = [twice(bytes), twice(bytes)].some(([one, other]) => one.buffer === other.buffer);
    expect(same).toBe(shares);
  });

  it.each([64, 100, 4096, 4097, 8000, 12 * 1024, 32 * 1024, 40_000])(
    'of %d bytes is on 64 bytes, and its own',
    (bytes) => {
      const values = Array.from({ length: 40 }, (_, i) => copyValue(from, i, i + bytes));
      values.forEach((value, i) => {
        expect((loadNative().address(value.buffer as ArrayBuffer) + value.byteOffset) % 64).toBe(0);
        expect(Buffer.compare(value, from.subarray(i, i + bytes))).toBe(0);
      });
    },
  );
});
