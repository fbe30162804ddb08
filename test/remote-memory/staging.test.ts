/** Tests operations that need memory to copy through, when the system has none for them. */
import { Status } from 'rdma-rpc';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { OpenProtectionDomain } from '../../runtime/verbs/protection-domain.ts';
import { caught, lend, type MemoryBed, memoryWays, openMemory } from './memory-bed.ts';

let bed: MemoryBed | undefined;
afterEach(async () => {
  vi.restoreAllMocks();
  await bed?.close();
});

describe.each(memoryWays)('on %s', (way) => {
  test.each(['read', 'write'] as const)(
    'a %s without memory fails, and the next one succeeds',
    async (call) => {
      bed = await openMemory(way);
      const { remote } = await lend(bed, 'from server', new ArrayBuffer(64), { read: true, write: true });
      vi.spyOn(OpenProtectionDomain.prototype, 'allocBuffer').mockImplementationOnce(() => {
        throw new Error('the system has no memory');
      });
      const error = await caught(remote[call](new Uint8Array(8)));
      expect(error).toMatchObject({ code: Status.RESOURCE_EXHAUSTED, processed: 'no' });
      expect(error.message).toContain('the system has no memory');
      await remote[call](new Uint8Array(8));
    },
  );
});
