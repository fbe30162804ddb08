/**
 * Compares our codec with protobufjs: the same bytes are written, and the same message is read, for every
 * message of the corpus.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../extent.ts';
import { type AnyMessage, corpus, fromTheirs, initOf, toTheirs } from './corpus.ts';

const seed = 20_261_120;

describe.each(corpus.map((pair) => [pair.name, pair] as const))('%s', (_name, { ours, theirs }) => {
  test('encodes to the same bytes, and decodes them to the same message', () => {
    const property = fc.property(initOf(theirs), (init) => {
      const bytes = theirs.encode(toTheirs(theirs, init)).finish();
      expect(Buffer.from(ours.encode(init))).toEqual(Buffer.from(bytes));
      expect(ours.decode(bytes)).toEqual(fromTheirs(theirs, theirs.decode(bytes) as unknown as AnyMessage));
    });
    fc.assert(property, { seed, numRuns: runs(150) });
  });

  test('survives a round trip', () => {
    const property = fc.property(initOf(theirs), (init) => {
      const bytes = ours.encode(init);
      const message = ours.decode(bytes);
      expect(Buffer.from(ours.encode(message))).toEqual(Buffer.from(bytes));
      expect(ours.create(message)).toEqual(message);
    });
    fc.assert(property, { seed, numRuns: runs(60) });
  });

  test('create fills in the same values as decode', () => {
    expect(ours.create()).toEqual(ours.decode(new Uint8Array(0)));
    expect(ours.encode(ours.create())).toHaveLength(0);
  });
});
