/**
 * Tests encoding with a limit. The encoder writes nothing at or after the limit and reports insufficient
 * room, and the size that `bound` returns is large enough.
 */
import fc from 'fast-check';
import { Writer } from 'rdma-rpc/codec';
import { describe, expect, test } from 'vitest';
import { runs } from '../extent.ts';
import { type AnyMessage, type AnyType, corpus, initOf } from './corpus.ts';
import { Packed, Tree, type TreeInit, Unpacked } from './gen/everything.rdma.ts';

const seed = 20_261_121;
const start = 7;
const mark = 0xee;

/**
 * Encodes at `start` with this room, in memory that continues after it. Returns undefined when the room does
 * not suffice.
 */
function encoded(
  type: AnyType,
  message: AnyMessage,
  room: number,
  gatherBytes: number,
): Uint8Array | undefined {
  const writer = new Writer();
  writer.gatherBytes = gatherBytes;
  const memory = new Uint8Array(start + room + 64).fill(mark);
  writer.reset(memory);
  const end = type.encodeTo(message, writer, start, start + room);
  expect(end).toBeLessThanOrEqual(start + room);
  expect(memory.subarray(0, start).every((byte) => byte === mark)).toBe(true);
  expect(memory.subarray(start + room).every((byte) => byte === mark)).toBe(true);
  if (writer.full) return undefined;
  const parts: Uint8Array[] = [];
  let at = start;
  for (let i = 0; i < writer.outOfLine; i++) {
    parts.push(memory.subarray(at, writer.outOfLineAt[i]), writer.outOfLineValue[i]!);
    at = writer.outOfLineAt[i]!;
  }
  return Buffer.concat([...parts, memory.subarray(at, end)]);
}

function boundOf(type: AnyType, message: AnyMessage, gatherBytes: number): number {
  const writer = new Writer();
  writer.gatherBytes = gatherBytes;
  writer.reset(new Uint8Array(0));
  return type.bound(message, writer);
}

describe.each(corpus.map((pair) => [pair.name, pair] as const))('%s', (_name, { ours, theirs }) => {
  test('fits the size that bound returns; with less room it is written completely or not at all', () => {
    const share = fc.double({ min: 0, max: 1, noNaN: true });
    const threshold = fc.constantFrom(2, 61, Number.POSITIVE_INFINITY);
    const property = fc.property(initOf(theirs), share, threshold, (init, part, gatherBytes) => {
      const plain = Buffer.from(ours.encode(init));
      const bound = boundOf(ours, init, gatherBytes);
      expect(encoded(ours, init, bound, gatherBytes)).toEqual(plain);
      const some = encoded(ours, init, Math.floor(bound * part), gatherBytes);
      if (some !== undefined) expect(some).toEqual(plain);
    });
    fc.assert(property, { seed, numRuns: runs(100) });
  });
});

const tree = Tree as unknown as AnyType;
const packed = Packed as unknown as AnyType;

/**
 * In fields of one kind, each element checks the room; in fields of other kinds, one check covers the whole
 * list.
 */
const messages: [string, AnyType, object][] = [
  ['a message without fields', tree, {}],
  ['a string', tree, { label: 'abc' } satisfies TreeInit],
  ['a long string, which is measured', tree, { label: 'ä'.repeat(2000) }],
  ['many small messages', tree, { children: Array.from({ length: 40 }, () => ({})) }],
  ['many small strings', packed, { fString: Array.from({ length: 40 }, () => '') }],
  ['many small bytes', packed, { fBytes: Array.from({ length: 40 }, () => new Uint8Array(0)) }],
  ['many numbers', packed, { fInt32: Array.from({ length: 40 }, (_, i) => -i) }],
  ['many bigints', packed, { fInt64: Array.from({ length: 40 }, (_, i) => BigInt(-i)) }],
  ['a map', tree, { named: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [i, {}])) }],
  [
    'siblings on both sides of 128 bytes',
    tree,
    { children: [130, 126, 127, 128, 1, 0, 20_000, 3].map((length) => ({ label: 'x'.repeat(length) })) },
  ],
];

test.each(messages)(
  '%s is written completely or not at all with any room up to the bound',
  (_what, type, message) => {
    const plain = Buffer.from(type.encode({ ...message }));
    const bound = boundOf(type, { ...message }, Number.POSITIVE_INFINITY);
    const step = bound > 2000 ? 997 : 1;
    for (let room = 0; room <= bound; room += step) {
      const found = encoded(type, { ...message }, room, Number.POSITIVE_INFINITY);
      if (found !== undefined && Buffer.compare(found, plain) !== 0)
        expect.fail(`with room for ${room} bytes`);
    }
    expect(encoded(type, { ...message }, bound, Number.POSITIVE_INFINITY)).toEqual(plain);
  },
);

test('a message too large for the shared memory of encode() has the same encoding', () => {
  const label = 'x'.repeat(70_000);
  for (const message of [
    { label },
    { label, payload: new Uint8Array(90_000) },
    { children: [{ label }, { label: 'ä'.repeat(40_000) }] },
  ]) {
    const bytes = Tree.encode(message);
    expect(bytes.constructor).toBe(Uint8Array);
    expect(bytes.byteOffset).toBe(0);
    expect(Buffer.from(Tree.encode(Tree.decode(bytes))).equals(bytes)).toBe(true);
  }
});

test('a message that grows while it is being encoded is refused, not cut off', () => {
  let reads = 0;
  const growing = {
    get label() {
      return 'x'.repeat(70_000 * ++reads);
    },
  };
  expect(() => Tree.encode(growing)).toThrow(/Tree: it became larger while it was being encoded/);
  expect(Tree.decode(Tree.encode({ label: 'next' })).label).toBe('next');
});

const lists: [string, unknown][] = [
  ...['fDouble', 'fFloat', 'fInt32', 'fUint32', 'fSint32', 'fFixed32', 'fSfixed32', 'fEnum'].map(
    (name): [string, unknown] => [name, 1],
  ),
  ...['fInt64', 'fUint64', 'fSint64', 'fFixed64', 'fSfixed64'].map((name): [string, unknown] => [name, 1n]),
  ['fBool', true],
  ['fString', 'abc'],
  ['fBytes', new Uint8Array(3)],
  ['fMessage', {}],
];

test.each(lists)('a list that grows while it is written stays within its room: %s', (name, value) => {
  for (const type of [Packed, Unpacked] as unknown as AnyType[]) {
    const growing = (): AnyMessage => {
      const list = [value];
      const more = Array.from({ length: 1000 }, () => value);
      const grow = (): unknown => {
        if (list.length === 1) list.push(...more);
        return value;
      };
      return { [name]: Object.defineProperty(list, 0, { get: grow, enumerable: true }) };
    };
    const room = boundOf(type, { [name]: [value] }, Number.POSITIVE_INFINITY);
    encoded(type, growing(), room, Number.POSITIVE_INFINITY);
    encoded(type, growing(), room + 8, Number.POSITIVE_INFINITY);
  }
});
