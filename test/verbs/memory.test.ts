/**
 * Tests that registered memory stays where it is, for everything that the application may do with its
 * buffers.
 */
import { Worker } from 'node:worker_threads';
import { Access, SendBatch, SendFlags, WcStatus } from 'rdma-rpc/verbs';
import { describe, expect, test } from 'vitest';
import { allRights, type End, openEnd, openPair, take } from './ends.ts';
import { collectAll } from './garbage.ts';

const bytes = 4096;
const text = (from: Uint8Array, length: number): string => Buffer.from(from.subarray(0, length)).toString();

/** Writes from a into the region of b, as a peer does. */
async function writeFrom(a: End, b: End, mr: End['mr'], word: string): Promise<void> {
  a.mr.bytes.set(Buffer.from(word));
  a.qp.post(new SendBatch(1).write(1, mr.addr, mr.rkey, SendFlags.signaled).sge(a.mr, 0, word.length));
  expect(await take(a.cq, 1, b.cq)).toMatchObject([{ status: WcStatus.success }]);
}

describe.each(['sim', 'shm'] as const)('on %s', (fabric) => {
  test('an ArrayBuffer of the application is moved, with all of its bytes', async () => {
    using pair = await openPair(fabric);
    const { a, b } = pair;
    const whole = new Uint8Array(bytes).fill(3);
    const part = whole.subarray(100, 200).fill(5);
    using mr = b.pd.regMr(part, allRights);
    expect([whole.byteLength, part.byteLength, mr.byteLength, mr.bytes.byteOffset]).toEqual([0, 0, 100, 100]);
    expect(new Uint8Array(mr.bytes.buffer).reduce((sum, byte) => sum + byte)).toBe(3 * (bytes - 100) + 500);
    await writeFrom(a, b, mr, 'moved');
    expect(text(mr.bytes, 5)).toBe('moved');
  });

  test('a SharedArrayBuffer is registered where it is', async () => {
    using pair = await openPair(fabric);
    const { a, b } = pair;
    const shared = new Uint8Array(new SharedArrayBuffer(bytes));
    using mr = b.pd.regMr(shared, allRights);
    await writeFrom(a, b, mr, 'shared');
    expect(text(shared, 6)).toBe('shared');
  });

  test('memory of allocBuffer may be registered twice, with different rights', () => {
    using end = openEnd(fabric, 'connect');
    const buffer = end.pd.allocBuffer(bytes);
    using first = end.pd.regMr(buffer, Access.localWrite);
    using second = end.pd.regMr(buffer, allRights);
    expect([first.rkey, second.addr, first.bytes.buffer]).toEqual([0, first.addr, second.bytes.buffer]);
  });

  test.each<[string, (buffer: ArrayBuffer) => unknown]>([
    ['dropped', () => undefined],
    ['transferred and dropped', (buffer) => transfer(buffer)],
    ['transferred to nothing', (buffer) => transfer(buffer, 0)],
    ['put on a transfer list', (buffer) => attempt(() => structuredClone(buffer, { transfer: [buffer] }))],
    ['posted to a port', (buffer) => attempt(() => new MessageChannel().port1.postMessage(0, [buffer]))],
  ])('peers still write to memory whose buffer is %s', async (_, misuse) => {
    using pair = await openPair(fabric);
    const { a, b } = pair;
    const regions = Array.from({ length: 8 }, () => b.pd.regMr(new ArrayBuffer(bytes), allRights));
    for (const mr of regions) misuse(mr.bytes.buffer as ArrayBuffer);
    await collectAll();
    for (const mr of regions) await writeFrom(a, b, mr, 'late');
    for (const mr of regions) mr.close();
  });
});

/** Before Node 22 `transfer()` does not exist. */
function transfer(buffer: ArrayBuffer, length?: number): void {
  const { transfer: move } = buffer as { transfer?: (length?: number) => ArrayBuffer };
  if (move === undefined) attempt(() => structuredClone(buffer, { transfer: [buffer] }));
  else move.call(buffer, length);
}
function attempt(call: () => unknown): void {
  try {
    call();
  } catch {
    // Node 21 and later refuse to move memory that they do not own.
  }
}

test('memory that was transferred to another thread outlives the thread that allocated it', async ({
  skip,
}) => {
  skip(!('transfer' in ArrayBuffer.prototype), 'only transfer() moves such memory to another thread');
  const entry = new URL('../../dist/bundle/verbs.js', import.meta.url).href;
  const program = `
    const { parentPort } = require('node:worker_threads');
    import(${JSON.stringify(entry)}).then(({ openDevice }) => {
      const pd = openDevice('sim').allocPd();
      const mr = pd.regMr(pd.allocBuffer(1 << 20), 1);
      mr.bytes.fill(42);
      const moved = mr.bytes.buffer.transfer();
      parentPort.postMessage(moved, [moved]);
    });
  `;
  const worker = new Worker(program, { eval: true });
  const moved = await new Promise<ArrayBuffer>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
  await worker.terminate();
  const seen = new Uint8Array(moved);
  expect(seen.byteLength).toBe(1 << 20);
  seen[0] = 1;
  expect(seen.every((byte, i) => byte === (i === 0 ? 1 : 42))).toBe(true);
});
