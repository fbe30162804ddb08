/**
 * Tests that the length of exposed memory is the registered length, even if the buffer changes afterwards.
 * The application may transfer the buffer to another owner, and a SharedArrayBuffer may grow.
 */

import { connectMemory } from 'rdma-rpc/memory';
import { afterEach, describe, expect, test } from 'vitest';
import { lend, type MemoryBed, openMemory } from './memory-bed.ts';

let bed: MemoryBed | undefined;
afterEach(() => bed?.close());

/** The types are those of ECMAScript 2024. */
const Growable = SharedArrayBuffer as new (
  bytes: number,
  options: { maxByteLength: number },
) => SharedArrayBuffer;

/** Memory of 64 bytes, and the ways in which the application changes it. */
const cases: readonly [
  string,
  () => ArrayBuffer | SharedArrayBuffer,
  (buffer: ArrayBufferLike) => unknown,
][] = [
  [
    'is transferred',
    () => new ArrayBuffer(64),
    (buffer) => (buffer as ArrayBuffer & { transfer(): ArrayBuffer }).transfer(),
  ],
  [
    'grows',
    () => new Growable(64, { maxByteLength: 4096 }),
    (buffer) => (buffer as unknown as { grow(bytes: number): void }).grow(4096),
  ],
];

// Node 20 cannot transfer.
const possible = cases.slice('transfer' in ArrayBuffer.prototype ? 0 : 1);

describe.each(possible)('memory that %s', (_, make, change) => {
  test('counts against the quota as it was registered', async () => {
    bed = await openMemory('tcp', { server: { quotas: { exposedBytesMax: 100 } } });
    const { server } = bed;
    for (let i = 0; i < 3; ++i) {
      const exposure = server.expose(make(), { read: true });
      change(exposure.bytes.buffer);
      await exposure.close();
    }
    const whole = server.expose(new ArrayBuffer(100), { read: true });
    expect(() => server.expose(new ArrayBuffer(1), { read: true })).toThrow(/100 of 100/);
    await whole.close();
  });

  test('is written, and onWritten is called', async () => {
    bed = await openMemory('tcp');
    const written: unknown[] = [];
    const { exposure, remote } = await lend(bed, 'from server', make(), {
      write: true,
      onWritten: (each) => written.push(each),
    });
    change(exposure.bytes.buffer);
    await remote.writeWithImmediate(new Uint8Array(8), 56, 5);
    // The answer to this message comes after the notification of the write.
    await exposure.close();
    expect(written).toEqual([{ offset: 56, byteLength: 8, immediate: 5 }]);
    expect(await connectMemory(bed.channel)).toBe(bed.client);
  });
});
