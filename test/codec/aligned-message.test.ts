/**
 * Tests messages in the aligned layout: encoded with large `bytes` out of line, laid out with gaps as at a
 * receiver, and decoded again. For any message and any cuts, the result is the same message, and every
 * out-of-line value begins on a multiple of 64 bytes. No byte of a gap is ever visible, even if a peer makes
 * false claims about its segments.
 */
import fc from 'fast-check';
import { CodecError, Source, Writer } from 'rdma-rpc/codec';
import { describe, expect, test } from 'vitest';
import { AlignedLayout, planAligned } from '../../runtime/boundary/outgoing/aligned-layout.ts';
import { encodeMeasured } from '../../runtime/codec/measured.ts';
import {
  AlignedMessage,
  alignedOffset,
  alignedTableBytes,
} from '../../runtime/codec/memory/aligned-message.ts';
import { msgpackType } from '../../runtime/msgpack/index.ts';
import { Extendable, Everything as Proto2 } from '../codegen/gen/proto2.rdma.ts';
import { runs } from '../extent.ts';
import { type AnyMessage, type AnyType, corpus, initOf } from './corpus.ts';
import { Empty, Maps, Oneofs, Packed, Tree } from './gen/everything.rdma.ts';

const seed = 20_261_122;
const noLimit = 2 ** 31;

/**
 * Returns the aligned layout of a message at a receiver, or undefined when the message has no out-of-line
 * value. Gaps, which are not sent, are filled with `gap`.
 */
/** All messages share one object, as the messages of a context do. */
const layout = new AlignedLayout();

function alignedOf(
  type: AnyType,
  message: AnyMessage,
  gatherBytes: number,
  alignBytes: number,
  gap = 0xee,
): Uint8Array | undefined {
  const writer = new Writer();
  writer.plan(gatherBytes, alignBytes);
  writer.reset(new Uint8Array(0));
  const room = type.bound(message, writer);
  const plan = planAligned(writer.planned, noLimit, room, writer.copied, noLimit);
  if (plan === undefined) return undefined;
  const memory = new Uint8Array(plan.roomBytes).fill(0xdd);
  writer.reset(memory);
  const end = encodeMeasured(type, message, writer, plan.tableBytes);
  layout.fill(writer, plan, memory, end);
  const aligned: Uint8Array[] = [];
  let at = 0;
  const put = (part: Uint8Array) => {
    if (part.length === 0) return;
    aligned.push(new Uint8Array(alignedOffset(at) - at).fill(gap), part.slice());
    at = alignedOffset(at) + part.length;
  };
  for (let i = 0; i < layout.stretches; i++) {
    put(memory.subarray(layout.from[i], layout.to[i]));
    const value = layout.value[i];
    if (value !== undefined) put(value);
  }
  expect(layout.gatherEntries).toBe(aligned.length / 2);
  layout.empty();
  return new Uint8Array(Buffer.concat(aligned));
}

interface Decoded {
  readonly message: unknown;
  readonly leases: number;
}

/** Decodes from memory that continues after the aligned layout. */
function decode(type: AnyType, aligned: Uint8Array, leaseBytes = 1): Decoded {
  const memory = new Uint8Array(aligned.length + 256).fill(0xcc);
  memory.set(aligned);
  const source = new Source();
  source.leaseBytes = leaseBytes;
  const opened = AlignedMessage.of(memory.subarray(0, aligned.length));
  if (typeof opened === 'string') throw new CodecError(type.typeName, opened, 0);
  source.open(opened);
  const message = type.decodeFrom(source, 0, opened.bytes);
  source.close(opened.bytes);
  return { message, leases: source.leases };
}

/** Yields every Uint8Array in a message. */
function* bytesIn(value: unknown): Generator<Uint8Array> {
  if (value instanceof Uint8Array) yield value;
  else if (typeof value === 'object' && value !== null)
    for (const each of Object.values(value)) yield* bytesIn(each);
}

/** Returns the aligned layout of `bytes`, cut at those positions, with `gap` between the cuts. */
function cut(bytes: Uint8Array, cuts: readonly number[], gap: number): Uint8Array {
  const places = [0, ...cuts, bytes.length];
  const count = places.length - 1;
  const aligned = new Uint8Array(alignedTableBytes(count) + bytes.length + 64 * (count + 1)).fill(gap);
  const view = new DataView(aligned.buffer);
  view.setUint32(0, count, true);
  let at = alignedTableBytes(count);
  for (let i = 0; i < count; i++) {
    const part = bytes.subarray(places[i], places[i + 1]);
    view.setUint32(4 + 4 * i, part.length, true);
    if (part.length === 0) continue;
    aligned.set(part, alignedOffset(at));
    at = alignedOffset(at) + part.length;
  }
  return aligned.subarray(0, at);
}

const withBytes = corpus.filter((pair) =>
  /Scalars|Optionals|Packed|Unpacked|Maps|Oneofs|Tree|WellKnown/.test(pair.name),
);

describe.each(withBytes.map((pair) => [pair.name, pair] as const))('%s', (_name, { ours, theirs }) => {
  test('is decoded from its aligned layout at every threshold', () => {
    const threshold = fc.constantFrom(1, 2, 8, 61, 127, 200, Number.POSITIVE_INFINITY);
    const property = fc.property(initOf(theirs), threshold, threshold, (init, gather, align) => {
      const aligned = alignedOf(ours, init, gather, align);
      if (aligned === undefined) return;
      const { message } = decode(ours, aligned, Math.min(gather, align));
      expect(message).toEqual(ours.decode(ours.encode(init)));
      for (const value of bytesIn(message)) {
        if (value.length >= Math.min(gather, align)) expect(value.byteOffset % 64).toBe(0);
      }
    });
    fc.assert(property, { seed, numRuns: runs(150) });
  });
});

const payload = (length: number, salt = 0) => new Uint8Array(length).map((_, i) => i * 31 + salt);
const any = (type: unknown) => type as AnyType;
const trees = {
  label: 'root',
  payload: payload(5000),
  children: [
    { label: 'a', payload: payload(64, 1), next: { label: 'deep', payload: payload(999, 2) } },
    { payload: payload(63, 3), named: { x: { payload: payload(65, 4) }, y: { label: 'none' } } },
  ],
};
const many = {
  fBytes: Array.from({ length: 3000 }, (_, i) => payload(i % 200, i)),
  fString: ['between', 'and behind'],
};
const cases: [string, AnyType, AnyMessage][] = [
  ['nested values, lists and maps', any(Tree), trees],
  ['thousands of values', any(Packed), many],
  [
    'a map of bytes',
    any(Maps),
    { byUint32: { 1: payload(300), 2: payload(0), 900: payload(10_000) }, byInt32: { 5: 'x' } },
  ],
  [
    'a oneof',
    any(Oneofs),
    { before: 1, choice: { case: 'data', value: payload(700) }, between: 2, behind: 3 },
  ],
  [
    'msgpack',
    any(msgpackType('test')),
    { a: payload(70), b: [payload(3), { c: payload(64), d: 'text' }], e: 1 },
  ],
];

test.each(cases)('%s: each value is a view that begins on a multiple of 64 bytes', (_name, type, message) => {
  for (const [gather, align] of [
    [60, 60],
    [Number.POSITIVE_INFINITY, 60],
    [200, 60],
    [1, 1],
  ] as const) {
    const aligned = alignedOf(type, message, gather, align)!;
    const decoded = decode(type, aligned, align);
    expect(Buffer.compare(type.encode(decoded.message as AnyMessage), type.encode(message))).toBe(0);
    const large = [...bytesIn(decoded.message)].filter((value) => value.length >= align);
    expect(decoded.leases).toBe(large.length);
    expect(large.every((value) => value.byteOffset % 64 === 0)).toBe(true);
  }
});

describe('fields that the receiver does not know', () => {
  test('are skipped, whatever they contain', () => {
    const aligned = alignedOf(any(Tree), trees, 60, 60)!;
    expect(decode(any(Empty), aligned).message).toEqual({});
  });

  test('are kept, whichever segment they are in', () => {
    // Fields of Extendable: bytes, a message with bytes in it, and a group with bytes in it, followed by the
    // known field.
    const value = payload(80);
    const parts = [
      [0xb2, 0x09, 80],
      value,
      [0xba, 0x09, 84, 0x0a, 80],
      value,
      [0x10, 1],
      [0xc3, 0x09, 0x0a, 80],
      value,
      [0xc4, 0x09, 0x08, 7],
    ];
    const bytes = Buffer.concat(parts.map((part) => Uint8Array.from(part)));
    const plain = Extendable.decode(bytes);
    expect([plain.known, plain.$unknownFields?.length]).toEqual([7, bytes.length - 2]);
    for (const cuts of [
      [3, 83],
      [88, 168],
      [3, 83, 88, 168, 174, 254],
      [174, 254],
    ]) {
      expect(decode(any(Extendable), cut(bytes, cuts, 0xee)).message).toEqual(plain);
    }
  });

  test('groups are decoded correctly after the search for their end', () => {
    const inner = { id: 2, name: 'inner', must: {}, raw: payload(300, 5) };
    const message = {
      id: 1,
      name: 'outer',
      must: { x: 3 },
      part: { text: 'before', inner, piece: [{ number: 4 }] },
      raw: payload(200),
      item: [{ amount: 5 }],
    };
    const aligned = alignedOf(any(Proto2), message, 100, 100)!;
    const decoded = decode(any(Proto2), aligned, 100);
    expect(decoded.message).toEqual(Proto2.decode(Proto2.encode(message)));
    expect(
      [...bytesIn(decoded.message)].filter((each) => each.length > 100).map((each) => each.byteOffset % 64),
    ).toEqual([0, 0]);
    expect(decoded.leases).toBe(2);
  });
});

describe("a peer's table of segments", () => {
  const outcome = (type: AnyType, aligned: Uint8Array): unknown => {
    try {
      return decode(type, aligned, 8).message;
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      return 'refused';
    }
  };

  test('with many groups after many segments is read in linear time', () => {
    // If each group skipped all empty segments again, this would take 4 * 10^10 steps.
    const groups = 20_000;
    const head = Proto2.encode({ id: 1, name: '', must: {} });
    const group = [0x83, 0x01, 0x12, 1, 0x78, 0x84, 0x01]; // An Item with an unknown value of one byte.
    const bytes = new Uint8Array([...head, ...Array.from({ length: groups }, () => group).flat()]);
    const empty = Array.from({ length: 2_000_000 }, () => 0);
    const cuts = Array.from({ length: groups }, (_, i) => head.length + i * group.length + 4);
    const { message } = decode(any(Proto2), cut(bytes, empty.concat(cuts), 0xee));
    expect(message).toEqual(Proto2.decode(bytes));
  });

  test('with cuts anywhere gives the message or an error, and never a byte of a gap', () => {
    let read = 0;
    let refused = 0;
    const small = {
      ...trees,
      payload: payload(9),
      children: [{ payload: payload(12) }, { label: 'x', leaf: { kind: 1 } }],
    };
    const messages: [AnyType, Uint8Array][] = [
      [any(Tree), Tree.encode(small)],
      [any(Empty), Tree.encode(small)],
      [
        any(Packed),
        Packed.encode({
          fBytes: [payload(10), payload(20)],
          fDouble: [1, 2],
          fString: ['one', 'two'],
          fInt64: [-1n],
        }),
      ],
      [any(Maps), Maps.encode({ byUint32: { 1: payload(10), 300: payload(9) }, byBool: { true: 'yes' } })],
    ];
    const cutAnywhere = ([type, plain]: [AnyType, Uint8Array], cuts: readonly number[]) => {
      const first = outcome(type, cut(plain, cuts, 0x0a));
      expect(outcome(type, cut(plain, cuts, 0xf5))).toEqual(first);
      if (first === 'refused') ++refused;
      else {
        ++read;
        expect(first).toEqual(type.decode(plain));
      }
    };
    for (const each of messages) for (let at = 0; at <= each[1].length; at++) cutAnywhere(each, [at]);
    const places = fc.array(fc.nat(300), { minLength: 2, maxLength: 5 });
    const property = fc.property(fc.constantFrom(...messages), places, (each, parts) => {
      const cuts = parts.map((part) => part % (each[1].length + 1)).sort((a, b) => a - b);
      cutAnywhere(each, cuts);
    });
    fc.assert(property, { seed, numRuns: runs(1000) });
    expect(Math.min(read, refused)).toBeGreaterThan(10);
  });

  const table = (...words: number[]) => new Uint8Array(Uint32Array.from(words).buffer);
  test.each([
    ['an empty table', new Uint8Array(0)],
    ['a table with half a count', new Uint8Array(3)],
    ['a table without chunks', table(0)],
    ['a table beyond the aligned message', table(100, 1)],
    ['a table beyond all memory', table(0xffff_ffff, 1)],
    ['a chunk beyond the aligned message', table(1, 1)],
    ['lengths that wrap around', table(3, 0xffff_ffff, 0xffff_ffff, 2)],
    ['a last chunk beyond the aligned message', new Uint8Array([...cut(payload(100), [50], 0)].slice(0, -1))],
  ])('%s is refused', (_name, aligned) => {
    expect(typeof AlignedMessage.of(aligned)).toBe('string');
  });
});
