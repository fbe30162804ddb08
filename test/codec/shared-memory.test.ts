/**
 * Another thread rewrites the memory of messages while they are decoded, as a hostile peer over shared memory
 * can. The messages are refused or decoded, and the process does not crash.
 */
import { Worker } from 'node:worker_threads';
import { CodecError } from 'rdma-rpc/codec';
import { describe, expect, test } from 'vitest';
import { AlignedMessage } from '../../runtime/codec/memory/aligned-message.ts';
import { isShared, markShared } from '../../runtime/codec/memory/shared-memory.ts';
import { Source } from '../../runtime/codec/memory/source.ts';
import { msgpackType } from '../../runtime/msgpack/msgpack-type.ts';
import { EchoMessage } from '../runtime/gen/echo.rdma.ts';

/**
 * Overwrites texts at constantly changing offsets, so that they become longer, shorter, invalid, and valid
 * again.
 */
const rewriter = `
  const { workerData } = require('node:worker_threads');
  const bytes = new Uint8Array(workerData.memory), stop = new Int32Array(workerData.stop);
  const first = bytes.slice();
  const values = [0x61, 0xc3, 0xa4, 0xe2, 0x82, 0xac, 0xf0, 0x80, 0xff, 0x00, 0x0a, 0xc1, 0xdf];
  let state = 1;
  while (Atomics.load(stop, 0) === 0) {
    for (let i = 0; i < 64; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      const at = (state >>> 8) % bytes.length;
      bytes[at] = values[state % values.length];
    }
    // Long texts become short, and short texts become long.
    bytes.fill(0x61, Math.min(16, bytes.length));
    bytes.set(first);
  }`;

async function whileRewritten(
  encoded: Uint8Array,
  decode: (source: Source) => unknown,
  times = 40_000,
): Promise<number> {
  const memory = new SharedArrayBuffer(encoded.length);
  const stop = new SharedArrayBuffer(4);
  const bytes = new Uint8Array(memory);
  bytes.set(encoded);
  markShared(memory);
  const source = new Source();
  source.reset(bytes);
  expect(source.shared).toBe(true);
  const worker = new Worker(rewriter, { eval: true, workerData: { memory, stop } });
  await new Promise((resolve) => worker.once('online', resolve));
  let refused = 0;
  for (let i = 0; i < times; i++) {
    try {
      decode(source);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      ++refused;
    }
  }
  Atomics.store(new Int32Array(stop), 0, 1);
  await worker.terminate();
  return refused;
}

const texts = ['ä'.repeat(40), 'a'.repeat(3000), '€'.repeat(200), 'x'.repeat(6000), '𝄞'.repeat(12)];
const message = { text: texts[0]!, payload: Buffer.from('b'.repeat(300)), number: 7 };

describe('a message in memory that is rewritten continuously is decoded or refused', () => {
  test.each(texts)('when it contains texts', async (text) => {
    const encoded = EchoMessage.encode({ ...message, text });
    const refused = await whileRewritten(encoded, (source) =>
      EchoMessage.decodeFrom(source, 0, encoded.length),
    );
    expect(refused).toBeGreaterThan(0);
  });

  // A string of that size ends exactly at the end of the memory.
  test('when it contains a large text', async () => {
    const encoded = EchoMessage.encode({ text: '€'.repeat(100_000) });
    await whileRewritten(encoded, (source) => EchoMessage.decodeFrom(source, 0, encoded.length), 2000);
  });

  test('when it is MessagePack', async () => {
    const type = msgpackType<object>('test.Any');
    const encoded = type.encode({
      texts: texts.slice(0, 2),
      numbers: [1, 2.5, -3],
      nested: { a: { b: [] } },
    });
    expect(
      await whileRewritten(encoded, (source) => type.decodeFrom(source, 0, encoded.length)),
    ).toBeGreaterThan(0);
  });

  test('when the table of its aligned layout changes', async () => {
    const memory = new Uint8Array(1024);
    const table = new DataView(memory.buffer);
    for (const [i, word] of [3, 10, 300, 20].entries()) table.setUint32(4 * i, word, true);
    await whileRewritten(memory, (source) => {
      const aligned = AlignedMessage.of(source.bytes);
      if (typeof aligned === 'string') throw new CodecError('aligned', aligned);
      const inside = new Source();
      inside.open(aligned);
      return EchoMessage.decodeFrom(inside, 0, aligned.bytes);
    });
  });
});

test('every decoder recognizes parts of shared memory', () => {
  const memory = new ArrayBuffer(100);
  expect(isShared(memory)).toBe(false);
  markShared(memory);
  const source = new Source();
  source.reset(new Uint8Array(memory, 10, 20));
  expect(source.shared).toBe(true);
  source.reset(new Uint8Array(10));
  expect(source.shared).toBe(false);
});
