/** Writes become segments: no byte is lost, no segment is too long, and both encodings decode to the same. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Segment } from '../../runtime/socket/gen/rdma_rpc/socket.rdma.ts';
import { OutgoingSegment, socketService } from '../../runtime/socket/segment.ts';
import { segmentsOf } from '../../runtime/socket/segments.ts';

const { input } = socketService.methods.connect;
const seed = 20_261_130;
const joined = (all: readonly Uint8Array[]): string => Buffer.concat(all).toString('hex');

test('segmentsOf keeps all bytes in order, fills segments, and copies nothing', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 50 })),
      fc.integer({ min: 1, max: 40 }),
      (chunks, limit) => {
        const segments = segmentsOf(chunks, limit);
        expect(joined(segments.flat())).toBe(joined(chunks));
        const sizes = segments.map((each) => each.reduce((sum, { byteLength }) => sum + byteLength, 0));
        expect(sizes.slice(0, -1).every((size) => size === limit)).toBe(true);
        expect(sizes.every((size) => size > 0 && size <= limit)).toBe(true);
        const memory = new Set<ArrayBufferLike>(chunks.map(({ buffer }) => buffer));
        expect(segments.flat().every(({ buffer }) => memory.has(buffer))).toBe(true);
      },
    ),
    { seed },
  );
});

test('a write of 1 MiB is one segment', () => {
  expect(segmentsOf([Buffer.alloc(1 << 20)])).toHaveLength(1);
});

test('a copied segment decodes as the message of the .proto file', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 5 }),
      fc.boolean(),
      fc.boolean(),
      (data, fin, reset) => {
        const decoded = Segment.decode(input.encode(new OutgoingSegment(data, false, fin, reset)));
        expect(joined(decoded.data)).toBe(joined(data));
        expect(decoded).toMatchObject({ fin, reset });
        expect(decoded.data.length).toBeLessThanOrEqual(1);
      },
    ),
    { seed },
  );
});

test('large buffers that stay unchanged are sent without a copy, and decode to the same', () => {
  const data = [Buffer.alloc(20_000, 'a'), Buffer.alloc(3, 'b'), Buffer.alloc(17_000, 'c')];
  const stays = new OutgoingSegment(data, true);
  expect(stays.inPlace).toBe(true);
  expect(joined(Segment.decode(input.encode(stays)).data)).toBe(joined(data));
  expect(new OutgoingSegment([Buffer.alloc(100)], true).inPlace).toBe(false);
  expect(new OutgoingSegment(data).inPlace).toBe(false);
});

test('the length of a segment is encoded as a varint, whatever its size', () => {
  for (const size of [1, 127, 128, 16_383, 16_384, 1 << 20]) {
    const [only] = Segment.decode(input.encode(new OutgoingSegment([Buffer.alloc(size, 'x')]))).data;
    expect(only?.byteLength).toBe(size);
  }
});
