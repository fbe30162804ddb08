/**
 * Tests encoding with out-of-line values. The encoded segments and the values, joined in order, equal the
 * plain encoding, for every choice of out-of-line values.
 */
import fc from 'fast-check';
import { outOfLineMax, Writer } from 'rdma-rpc/codec';
import { describe, expect, test } from 'vitest';
import { runs } from '../extent.ts';
import { type AnyMessage, type AnyType, corpus, initOf } from './corpus.ts';
import { Packed, Scalars, Tree, type TreeInit } from './gen/everything.rdma.ts';

const seed = 20_261_121;

interface Gathered {
  /** The encoded segments and values, joined in order. */
  readonly bytes: Buffer;
  readonly outOfLine: number;
  readonly memoryBytes: number;
}

/**
 * Encodes at an odd offset of a larger memory, checks the guarantees of the writer, and joins the segments.
 */
function gather(type: AnyType, message: AnyMessage, gatherBytes: number): Gathered {
  const writer = new Writer();
  writer.gatherBytes = gatherBytes;
  const start = 13;
  writer.reset(new Uint8Array(0));
  const room = type.bound(message, writer);
  const { gathered, planned } = writer;
  const memory = new Uint8Array(start + room).fill(0xee);
  writer.reset(memory);
  type.bound(message, writer);
  const end = type.encodeTo(message, writer, start);
  expect(end).toBeLessThanOrEqual(start + room);
  expect([...memory.subarray(0, start)]).toEqual(new Array(start).fill(0xee));
  expect([writer.held, writer.outOfLine]).toEqual([gathered, planned]);
  const segments: Uint8Array[] = [];
  let at = start;
  for (let i = 0; i < writer.outOfLine; i++) {
    const position = writer.outOfLineAt[i] as number;
    if (position < at) throw new Error(`position ${i} lies in front of the one before it`);
    segments.push(memory.subarray(at, position), writer.outOfLineValue[i] as Uint8Array);
    at = position;
  }
  segments.push(memory.subarray(at, end));
  return { bytes: Buffer.concat(segments), outOfLine: writer.outOfLine, memoryBytes: end - start };
}

const withBytes = corpus.filter((pair) =>
  /Scalars|Optionals|Packed|Unpacked|Maps|Oneofs|Tree|WellKnown/.test(pair.name),
);

describe.each(withBytes.map((pair) => [pair.name, pair] as const))('%s', (_name, { ours, theirs }) => {
  test('the segments join to the plain encoding at every threshold', () => {
    const threshold = fc.constantFrom(1, 2, 8, 61, 127, 128, 200, Number.POSITIVE_INFINITY);
    const property = fc.property(initOf(theirs), threshold, (init, gatherBytes) => {
      expect(gather(ours, init, gatherBytes).bytes).toEqual(Buffer.from(ours.encode(init)));
    });
    fc.assert(property, { seed, numRuns: runs(150) });
  });
});

const tree = Tree as unknown as AnyType;
const sizes = [0, 1, 120, 126, 127, 128, 129, 16_000, 16_380, 16_383, 16_384, 16_385, 70_000];
const payload = (length: number) => new Uint8Array(length).map((_, i) => i * 31);

describe('lengths around the steps of a varint', () => {
  test.each(sizes)('a payload of %i bytes, alone, nested and between others', (length) => {
    const shapes: TreeInit[] = [
      { payload: payload(length) },
      { next: { payload: payload(length) } },
      {
        label: 'a',
        children: [{ next: { payload: payload(length), leaf: { kind: 1 } }, label: 'b' }],
        leaf: {},
      },
      { children: [{ payload: payload(length) }, { payload: payload(3) }, { payload: payload(length) }] },
      { named: { one: { payload: payload(length) }, two: { next: { payload: payload(length) } } } },
      { label: 'x'.repeat(length), next: { label: 'x'.repeat(length), payload: payload(length) } },
    ];
    for (const shape of shapes) {
      const plain = Buffer.from(Tree.encode(shape));
      for (const threshold of [1, 100, 127, 128, 16_384]) {
        expect(gather(tree, { ...shape }, threshold).bytes.equals(plain)).toBe(true);
      }
      expect(plain.equals(Tree.encode(Tree.decode(plain)))).toBe(true);
    }
  });
});

describe('out-of-line values', () => {
  test('are exactly the values of at least the threshold', () => {
    const message = { children: [{ payload: payload(99) }, { payload: payload(100) }] };
    expect(gather(tree, message, 100)).toMatchObject({ outOfLine: 1 });
    expect(gather(tree, message, 99)).toMatchObject({ outOfLine: 2 });
    expect(gather(tree, message, 101)).toMatchObject({ outOfLine: 0 });
  });

  test('are never empty', () => {
    expect(gather(Packed as unknown as AnyType, { fBytes: [payload(0)] }, 1)).toMatchObject({
      outOfLine: 0,
      memoryBytes: 2,
    });
  });

  test(`are at most ${outOfLineMax}; further values are copied`, () => {
    const message = { fBytes: Array.from({ length: outOfLineMax + 5 }, () => payload(50)) };
    const gathered = gather(Packed as unknown as AnyType, message, 10);
    expect(gathered.outOfLine).toBe(outOfLineMax);
    expect(gathered.memoryBytes).toBe((outOfLineMax + 5) * 2 + 5 * 50);
    // toEqual() takes half a minute for 1.7 MB.
    expect(Buffer.from(Packed.encode(message)).equals(gathered.bytes)).toBe(true);
  });

  test("are the application's own buffers, not copies", () => {
    const value = payload(200);
    const writer = new Writer();
    writer.gatherBytes = 100;
    writer.reset(new Uint8Array(1024));
    Scalars.bound({ fBytes: value }, writer);
    Scalars.encodeTo({ fBytes: value }, writer, 0);
    expect(writer.outOfLineValue[0]).toBe(value);
    writer.reset(writer.bytes);
    expect(writer.outOfLineValue[0]).not.toBe(value);
    expect([writer.outOfLine, writer.held, writer.gathered, writer.planned]).toEqual([0, 0, 0, 0]);
  });
});
