/**
 * Tests frames between the ends of a tunnel: written frames are read unchanged, and invalid frames are
 * refused.
 */
import { expect, test } from 'vitest';
import { FrameReader, FrameWriter, Kind } from '../../../cli/tunnel/frames.ts';
import { Random } from '../../states/random.ts';

interface Seen {
  readonly frames: (readonly [kind: number, connection: number, value: number])[];
  readonly data: Map<number, Buffer[]>;
}

function read(messages: readonly (readonly Uint8Array[])[]): Seen {
  const seen: Seen = { frames: [], data: new Map() };
  const reader = new FrameReader({
    onFrame: (...frame) => void seen.frames.push(frame),
    onData: (connection, bytes) => {
      const before = seen.data.get(connection) ?? [];
      seen.data.set(connection, [...before, Buffer.from(bytes)]);
    },
  });
  for (const parts of messages) reader.read(parts);
  return seen;
}

test.each([1, 2, 3, 4, 5, 6, 7, 8])('random frames come back as they were, seed %d', (seed) => {
  const random = new Random(seed);
  const writer = new FrameWriter();
  const messages: Uint8Array[][] = [];
  const frames: [number, number, number][] = [];
  const data = new Map<number, Buffer[]>();
  for (let i = 0; i < 400; i++) {
    const connection = 1 + random.below(5);
    if (random.below(3) === 0) {
      const frame: [number, number, number] = [Kind.window, connection, random.below(2 ** 32)];
      frames.push(frame);
      writer.add(...frame);
    } else {
      const bytes = Buffer.alloc(random.below(random.pick([2, 100, 5_000, 70_000])), random.below(256));
      data.set(connection, [...(data.get(connection) ?? []), bytes]);
      writer.data(connection, bytes);
    }
    if (random.below(10) === 0) while (!writer.isEmpty) messages.push(writer.take());
  }
  while (!writer.isEmpty) messages.push(writer.take());
  const seen = read(messages);
  expect(seen.frames).toEqual(frames);
  for (const [connection, chunks] of data)
    expect(Buffer.concat(seen.data.get(connection) ?? []).equals(Buffer.concat(chunks))).toBe(true);
});

test('data may go on in the next part and in the next message', () => {
  const writer = new FrameWriter();
  writer.data(3, Buffer.from('abcdef'));
  writer.add(Kind.fin, 3);
  const bytes = Buffer.concat(writer.take());
  const seen = read([[bytes.subarray(0, 10), bytes.subarray(10, 12)], [bytes.subarray(12)]]);
  expect(Buffer.concat(seen.data.get(3)!).toString()).toBe('abcdef');
  expect(seen.frames).toEqual([[Kind.fin, 3, 0]]);
});

test('a head that is cut is refused', () => {
  const writer = new FrameWriter();
  writer.add(Kind.fin, 1);
  const [part] = writer.take();
  expect(() => read([[part!.subarray(0, 5)]])).toThrow('half a frame');
});
