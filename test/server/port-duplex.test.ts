/**
 * Tests the byte stream between threads: all bytes arrive in order, at most one chunk is on its way, and both
 * sides have one end.
 */
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PortDuplex } from '../../runtime/workers/port-duplex.ts';
import { comes } from '../outcomes.ts';

fc.configureGlobal({ seed: 20_261_121 });

function pair(): [PortDuplex, PortDuplex] {
  const { port1, port2 } = new MessageChannel();
  return [new PortDuplex(port1), new PortDuplex(port2)];
}
/** This does not iterate over the stream, because that would also destroy the other direction. */
function all(duplex: PortDuplex): Promise<Buffer> {
  const chunks: Buffer[] = [];
  duplex.on('data', (chunk: Buffer) => chunks.push(chunk));
  const bytes = new Promise<Buffer>((resolve, reject) => {
    duplex.once('end', () => resolve(Buffer.concat(chunks)));
    duplex.once('close', () => reject(new Error('closed before its end')));
  });
  return comes(bytes, 'the end of the bytes');
}

test('bytes written on one side are read on the other, both ways, in any sizes', async () => {
  const lengths = fc.array(fc.integer({ min: 1, max: 70_000 }), { maxLength: 12 });
  const chunk = (length: number, i: number): Uint8Array => new Uint8Array(length).fill(i + 1);
  await fc.assert(
    fc.asyncProperty(lengths, lengths, async (thereLengths, backLengths) => {
      const there = thereLengths.map(chunk);
      const back = backLengths.map(chunk);
      const [one, other] = pair();
      for (const bytes of there) one.write(bytes);
      for (const bytes of back) other.write(bytes);
      one.end();
      other.end();
      const [got, gotBack] = await Promise.all([all(other), all(one)]);
      expect(Buffer.compare(got, Buffer.concat(there))).toBe(0);
      expect(Buffer.compare(gotBack, Buffer.concat(back))).toBe(0);
    }),
    { numRuns: 100 },
  );
});

test('a side that is destroyed right after its last bytes loses none of them', async () => {
  const [one, other] = pair();
  one.on('finish', () => one.destroy());
  one.end(Buffer.from('last bytes'));
  expect((await all(other)).toString()).toBe('last bytes');
});

test('bytes written before the other side was destroyed are read, even when reading begins afterwards', async () => {
  const { port1, port2 } = new MessageChannel();
  const [one, other] = [new PortDuplex(port1), new PortDuplex(port2)];
  const closed = new Promise((resolve) => port2.once('close', resolve));
  one.on('finish', () => one.destroy());
  one.end(Buffer.from('last bytes'));
  await comes(closed, 'the end of the other side');
  expect(other.destroyed).toBe(false);
  expect((await all(other)).toString()).toBe('last bytes');
  expect(other.destroyed).toBe(true);
});

test('a reader that does not read stops the writer after one chunk', async () => {
  const { port1, port2 } = new MessageChannel();
  const writer = new PortDuplex(port1);
  for (let i = 0; i < 100; ++i) writer.write(Buffer.alloc(1000));
  await new Promise((resolve) => setImmediate(resolve));
  expect(receiveMessageOnPort(port2)?.message).toHaveLength(1000);
  expect(receiveMessageOnPort(port2)).toBeUndefined();
  writer.destroy();
  port2.close();
});

test('when one side is destroyed, the other one is destroyed, too', async () => {
  const [one, other] = pair();
  const closed = new Promise((resolve) => other.once('close', resolve));
  one.destroy();
  await comes(closed, 'the end of the other side');
  expect(other.destroyed).toBe(true);
});

test('a small view of a large buffer is sent without the rest of the buffer', async () => {
  const [one, other] = pair();
  one.end(Buffer.from(new ArrayBuffer(1_000_000), 500, 3));
  other.once('data', (chunk: Uint8Array) => expect(chunk.buffer.byteLength).toBe(3));
  await comes(new Promise((resolve) => other.once('end', resolve)), 'the end of the bytes');
  other.destroy();
});
