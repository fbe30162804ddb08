/**
 * Tests hostile bytes: for any input, a decoder either returns a message that can be encoded again, or throws
 * CodecError. The test is seeded, so that a failure is reproducible.
 */
import fc from 'fast-check';
import { CodecError } from 'rdma-rpc/codec';
import { describe, expect, test } from 'vitest';
import { runs } from '../extent.ts';
import { type AnyType, corpus, initOf } from './corpus.ts';

const seed = 20_261_122;

/** Returns true when the input was accepted. An error other than CodecError fails the test. */
function survives(type: AnyType, bytes: Uint8Array): boolean {
  let message: Record<string, unknown>;
  try {
    message = type.decode(bytes);
  } catch (error) {
    if (error instanceof CodecError) {
      expect(error.offset).toBeGreaterThanOrEqual(0);
      expect(error.offset).toBeLessThanOrEqual(bytes.length);
      return false;
    }
    throw error;
  }
  expect(type.decode(type.encode(message))).toEqual(message);
  return true;
}

/** Bytes that look like tags and lengths more often than random bytes do. */
const plausible = fc.array(
  fc.oneof(fc.constantFrom(0, 1, 2, 8, 10, 16, 18, 26, 34, 42, 0x80, 0xff, 0x7f), fc.nat({ max: 255 })),
  { maxLength: 60 },
);

describe.each(corpus.map((pair) => [pair.name, pair] as const))('%s', (_name, { ours, theirs }) => {
  test('random bytes are decoded or refused', () => {
    const property = fc.property(plausible, (bytes) => {
      survives(ours, new Uint8Array(bytes));
    });
    fc.assert(property, { seed, numRuns: runs(300) });
  });

  test('damaged encodings are decoded or refused', () => {
    const change = fc.record({ at: fc.nat(), byte: fc.nat({ max: 255 }) });
    const property = fc.property(
      initOf(theirs, 1),
      fc.array(change, { maxLength: 3 }),
      fc.nat(),
      fc.boolean(),
      (init, changes, cut, doubled) => {
        const valid = ours.encode(init);
        const bytes = new Uint8Array(doubled ? [...valid, ...valid] : valid);
        for (const { at, byte } of changes) if (bytes.length > 0) bytes[at % bytes.length] = byte;
        survives(ours, bytes.slice(0, changes.length === 0 ? cut % (bytes.length + 1) : bytes.length));
      },
    );
    fc.assert(property, { seed, numRuns: runs(150) });
  });
});
