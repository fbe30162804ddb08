/**
 * Tests texts of every length around each limit of the writers: the loop for short texts, measured texts, and
 * lengths of one, two and three bytes. Each text is written into exactly the room that it needs, on the Node
 * that runs the test.
 */
import { Writer } from 'rdma-rpc/codec';
import { describe, expect, test, vi } from 'vitest';
import { loopCharsMax } from '../../runtime/codec/primitives/text.ts';
import { Tree } from './gen/everything.rdma.ts';

/** Characters of one to four bytes, and a lone surrogate, which is written as three bytes. */
const characters = ['x', 'é', '漢', '😁', '\ud83d'];
/**
 * Texts of more than 1,024 characters are measured (primitives/room.ts). 21,845 × 3 is the size of
 * Msg.encode's own memory.
 */
const boundaries = [loopCharsMax, 42, 63, 127, 341, 1024, 5461, 8191, 16_383, 21_845, 32_750, 65_535];
const around = (length: number): number[] => Array.from({ length: 7 }, (_, i) => length - 3 + i);
const mark = 0xee;

describe.each(characters.map((each) => [JSON.stringify(each), each] as const))('texts of %s', (_, each) => {
  /** Returns a text of this length in UTF-16 units, as the writers count it. */
  const textOf = (length: number): string =>
    'x'.repeat(length % each.length) + each.repeat(Math.floor(length / each.length));

  test.each(boundaries)(
    'around %d characters are written in a message, alone and after bytes',
    (boundary) => {
      for (const length of around(boundary)) {
        const label = textOf(length);
        const expected = Buffer.from(label).toString();
        for (const bytes of [0, 100, 3000, 8192 - length, 65_536 - length, 65_536 - 3 * length]) {
          const children = bytes > 0 ? [{ payload: new Uint8Array(bytes) }] : [];
          // Fields are written in the order of their numbers, so the text follows the bytes.
          const encoded = Tree.encode({ children, named: { last: { label } } });
          expect(Tree.decode(encoded).named.last!.label === expected, `${length} behind ${bytes}`).toBe(true);
        }
      }
    },
  );

  test.each(boundaries)(
    'around %d characters are written in memory that ends soon after them',
    (boundary) => {
      const writer = new Writer();
      for (const length of around(boundary)) {
        const label = textOf(length);
        const expected = Buffer.from(label);
        writer.reset(new Uint8Array(0));
        const bound = Tree.bound({ label }, writer);
        for (const less of [0, 1, 5, 29, 30, 31, 32, 33]) {
          const room = bound - less;
          for (const rest of [0, 2 * length]) {
            const memory = Buffer.alloc(room + rest, mark);
            writer.reset(new Uint8Array(memory.buffer, memory.byteOffset, memory.byteLength));
            const end = Tree.encodeTo({ label }, writer, 0, room);
            expect(memory.subarray(room).equals(Buffer.alloc(rest, mark))).toBe(true);
            if (less === 0) expect(writer.full).toBe(false);
            if (writer.full) continue;
            expect(end).toBeLessThanOrEqual(room);
            expect(memory.subarray(end - expected.length, end).equals(expected)).toBe(true);
          }
        }
      }
    },
  );
});

/**
 * Node 22 and earlier truncate longer texts, and Node 24 and later throw an error. Therefore the test must
 * fail on every version of Node if the runtime offers too much room.
 */
test("Node's transcoder never gets more room than the memory has", async () => {
  type Write = (this: Uint8Array, text: string, at: number, bytesMax: number) => number;
  const methods = Buffer.prototype as unknown as { utf8Write: Write };
  const { utf8Write } = methods;
  const beyond: number[] = [];
  methods.utf8Write = function (text, at, bytesMax) {
    beyond.push(Math.max(0, at + bytesMax - this.length));
    return utf8Write.call(this, text, at, bytesMax);
  };
  try {
    vi.resetModules();
    const { writeUtf8 } = await import('../../runtime/codec/primitives/text.ts');
    for (const text of characters.map((each) => each.repeat(2000))) {
      const bytes = new Uint8Array(7 + Buffer.byteLength(text));
      expect(writeUtf8(bytes, 7, text)).toBe(bytes.length);
    }
  } finally {
    methods.utf8Write = utf8Write;
  }
  expect(beyond).toEqual(characters.map(() => 0));
});
