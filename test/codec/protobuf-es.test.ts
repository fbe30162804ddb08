/**
 * Compares our codec with protobuf-es, for every message of the corpus. On seeded random messages, each
 * library reads the output of the other, in the binary format and in JSON. If one of them refuses to write a
 * value as JSON (a timestamp in the year 200,000), the other must refuse it too.
 */
import {
  type JsonValue as EsJson,
  fromJson as esFromJson,
  toJson as esToJson,
  fromBinary,
  toBinary,
} from '@bufbuild/protobuf';
import fc from 'fast-check';
import * as codec from 'rdma-rpc/codec';
import { clone, createRegistry, equals } from 'rdma-rpc/codec';
import { fromJson, type JsonValue, toJson } from 'rdma-rpc/json';
import { describe, expect, test } from 'vitest';
import { runs } from '../extent.ts';
import { type AnyMessage, corpus, initOf, modules } from './corpus.ts';
import { registry as esRegistry, esType } from './protobuf-es.ts';
import { meaningful } from './well-known-values.ts';

const seed = 20_261_121;
const registry = createRegistry(codec, ...modules);

/** Returns the result of a function, or its error. */
function attempt<T>(run: () => T): { readonly value: T } | { readonly refused: string } {
  try {
    return { value: run() };
  } catch (error) {
    return { refused: (error as Error).message };
  }
}

/**
 * Converts JSON to text and back, as JSON travels: this drops `-0` and properties without a value.
 * protobuf-es writes all digits of a float; parsing the JSON again checks that no digit of a double is lost.
 */
const asFloats = (json: unknown): JsonValue =>
  JSON.parse(JSON.stringify(json), (_, value: unknown) =>
    typeof value === 'number' ? Math.fround(value) : value,
  ) as JsonValue;

/**
 * Messages are nested only one level deep, because the largest type of the corpus contains itself several
 * times.
 */
const depth = 1;

describe.each(corpus.map((pair) => [pair.name, pair] as const))('%s', (name, { ours, theirs }) => {
  const anything = initOf(theirs, depth);
  const sensible = initOf(theirs, depth, meaningful);

  const es = esType(name);

  test('each reads the binary encoding of the other', () => {
    const property = fc.property(sensible, (init) => {
      const bytes = ours.encode(init);
      const message = ours.decode(bytes);
      expect(equals(ours, ours.decode(toBinary(es, fromBinary(es, bytes))), message)).toBe(true);
    });
    fc.assert(property, { seed, numRuns: runs(60) });
  });

  test('each reads the JSON of the other', () => {
    let written = 0;
    const property = fc.property(sensible, fc.boolean(), fc.boolean(), (init, always, protoNames) => {
      const message = ours.decode(ours.encode(init));
      const options = { alwaysEmitImplicit: always, useProtoFieldName: protoNames };
      const mine = attempt(() => toJson(ours, message, { ...options, registry }));
      const other = attempt(() =>
        esToJson(es, fromBinary(es, ours.encode(message)), { ...options, registry: esRegistry }),
      );
      if ('refused' in mine || 'refused' in other) {
        expect({ mine: 'refused' in mine, other: 'refused' in other }).toEqual({ mine: true, other: true });
        return;
      }
      written++;
      expect(asFloats(mine.value)).toEqual(asFloats(other.value));
      const theirsAgain = esFromJson(es, mine.value as EsJson, { registry: esRegistry });
      const read = fromJson(ours, mine.value, { registry });
      expect(equals<AnyMessage, AnyMessage>(ours, ours.decode(toBinary(es, theirsAgain)), read)).toBe(true);
      expect(equals<AnyMessage, AnyMessage>(ours, read, message)).toBe(true);
    });
    fc.assert(property, { seed, numRuns: runs(60) });
    expect(written).toBeGreaterThan(0);
  });

  test('both refuse values that have no JSON form', () => {
    const property = fc.property(anything, (init) => {
      const message = ours.decode(ours.encode(init));
      const mine = attempt(() => toJson(ours, message, { registry }));
      const other = attempt(() =>
        esToJson(es, fromBinary(es, ours.encode(message)), { registry: esRegistry }),
      );
      // An empty Value is null in protobuf-es.
      if ('refused' in mine && /Value: is empty/.test(mine.refused)) return;
      expect('refused' in mine).toBe('refused' in other);
    });
    fc.assert(property, { seed, numRuns: runs(40) });
  });

  test('both agree on equality, and copies are equal', () => {
    const property = fc.property(anything, anything, (init, other) => {
      const [a, b] = [ours.decode(ours.encode(init)), ours.decode(ours.encode(other))];
      expect(equals(ours, a, clone(ours, a))).toBe(true);
      expect(clone(ours, a)).toEqual(a);
      const same = Buffer.compare(ours.encode(a), ours.encode(b)) === 0;
      if (same) expect(equals(ours, a, b)).toBe(true);
    });
    fc.assert(property, { seed, numRuns: runs(40) });
  });

  test('merge equals decoding one encoding after the other', () => {
    const property = fc.property(anything, anything, (first, second) => {
      const merged = codec.merge(ours, ours.decode(ours.encode(first)), second);
      const both = ours.decode(Buffer.concat([ours.encode(first), ours.encode(second)]));
      expect(merged).toEqual(both);
    });
    fc.assert(property, { seed, numRuns: runs(60) });
  });
});
