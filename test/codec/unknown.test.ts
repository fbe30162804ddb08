/**
 * Tests unknown fields that are kept as bytes. The tests call the runtime functions that generated code calls
 * when the option asks for it.
 */
import { Source, Writer } from 'rdma-rpc/codec';
import { boundUnknown, keepUnknown, type UnknownFields, writeUnknown } from 'rdma-rpc/generated/v1';
import { describe, expect, test } from 'vitest';

const source = new Source();
source.reset(Uint8Array.from({ length: 256 }, (_, i) => i));

describe('unknown fields', () => {
  test('are not written when none are kept', () => {
    const message: UnknownFields = {};
    expect(boundUnknown(message)).toBe(0);
    expect(writeUnknown(new Writer(), 1, message, 1)).toBe(1);
  });

  test('are copied in order, and written in that order', () => {
    const message: UnknownFields = {};
    for (const [start, end] of [
      [0, 3],
      [10, 11],
      [100, 140],
    ] as const)
      keepUnknown(message, source, start, end);
    const expected = [0, 1, 2, 10, ...source.bytes.subarray(100, 140)];
    expect([...message.$unknownFields!]).toEqual(expected);
    expect(message.$unknownFields!.buffer).not.toBe(source.bytes.buffer);
    expect(boundUnknown(message)).toBe(44);
    const writer = new Writer();
    writer.reset(new Uint8Array(50));
    expect(writeUnknown(writer, 5, message, 48)).toBe(5);
    expect(writer.full).toBe(true);
    expect(writeUnknown(writer, 5, message, 49)).toBe(49);
    expect([...writer.bytes.subarray(5, 49)]).toEqual(expected);
  });

  test('are stored in memory that doubles, so that a field is copied a few times at most', () => {
    const message: UnknownFields = {};
    const memories = new Set<ArrayBufferLike>();
    for (let i = 0; i < 10_000; i++) {
      keepUnknown(message, source, i % 200, (i % 200) + 2);
      memories.add(message.$unknownFields!.buffer);
    }
    expect(message.$unknownFields).toHaveLength(20_000);
    expect(memories.size).toBeLessThan(20);
  });
});
