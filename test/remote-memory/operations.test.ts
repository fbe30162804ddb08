/** What each right allows, on each fabric and in both directions. */
import { Status } from 'rdma-rpc';
import type { ExposeOptions, Remote } from 'rdma-rpc/memory';
import { afterEach, describe, expect, test } from 'vitest';
import { caught } from '../stream/stream-world.ts';
import { directions, lend, type MemoryBed, memoryWays, openMemory } from './memory-bed.ts';

let beds: MemoryBed[] = [];
afterEach(async () => {
  for (const bed of beds.splice(0)) await bed.close();
});
async function opened(...given: Parameters<typeof openMemory>): Promise<MemoryBed> {
  const bed = await openMemory(...given);
  beds.push(bed);
  return bed;
}

const cells = memoryWays.flatMap((way) => directions.map((direction) => [way, direction] as const));

describe.each(cells)('%s, %s', (way, direction) => {
  test('bytes are read and written in place, of any length, registered or not', async () => {
    const bed = await opened(way);
    const { exposure, remote } = await lend(bed, direction, new ArrayBuffer(3_000_000), { read: true, write: true });
    const user = direction === 'from client' ? bed.server : bed.client;
    expect(remote.byteLength).toBe(3_000_000);
    for (const length of [1, 31, 65_536, 65_537, 2_999_993]) {
      using local = user.alloc(length);
      for (const memory of [new Uint8Array(length), local.bytes]) {
        memory.fill(length % 251);
        await remote.write(memory, 7);
        expect(exposure.bytes[6]).toBe(0);
        expect(exposure.bytes.subarray(7, 7 + length).every((byte) => byte === length % 251)).toBe(true);
        memory.fill(0);
        await remote.read(memory, 7);
        expect(memory.every((byte) => byte === length % 251)).toBe(true);
      }
    }
  });
});
