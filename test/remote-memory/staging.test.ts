/** Tests operations that need memory to copy through, when they cannot get it. */
import { Status, type StatusCode } from 'rdma-rpc';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { VerbsError } from '../../runtime/verbs/errors.ts';
import { OpenProtectionDomain } from '../../runtime/verbs/protection-domain.ts';
import { caught, lend, type MemoryBed, memoryWays, openMemory } from './memory-bed.ts';

let bed: MemoryBed | undefined;
afterEach(async () => {
  vi.restoreAllMocks();
  await bed?.close();
});

const refusals: [string, Error, StatusCode, RegExp][] = [
  [
    'the system has no memory',
    new VerbsError('refused', 'allocBuffer: Cannot allocate memory'),
    Status.RESOURCE_EXHAUSTED,
    /^read: remote memory: .+: allocBuffer: Cannot allocate memory; .+ alloc\(\)/,
  ],
  [
    'the device was closed',
    new VerbsError('closed', 'sim is closed'),
    Status.UNAVAILABLE,
    /^read: remote memory: .+: sim is closed; connect again$/,
  ],
  [
    'the device does not support it',
    new VerbsError('unsupported', 'no such access'),
    Status.UNIMPLEMENTED,
    /^read: remote memory: .+: no such access; use another device or fabric$/,
  ],
  [
    'this library has made a mistake',
    new RangeError('regMr: unknown access rights'),
    Status.INTERNAL,
    /^read: remote memory: .+: regMr: unknown access rights; please report this error$/,
  ],
];

describe.each(memoryWays)('on %s', (way) => {
  test.each(refusals)('the error has the code and the next step when %s', async (_, cause, code, text) => {
    bed = await openMemory(way);
    const { remote } = await lend(bed, 'from server', new ArrayBuffer(64), { read: true, write: true });
    vi.spyOn(OpenProtectionDomain.prototype, 'allocBuffer').mockImplementationOnce(() => {
      throw cause;
    });
    const error = await caught(remote.read(new Uint8Array(8)));
    expect(error).toMatchObject({ code, processed: 'no', rawMessage: expect.stringMatching(text) });
    expect((error as Error).cause).toBe(cause);
    await remote.read(new Uint8Array(8));
  });

  test.each(['read', 'write'] as const)(
    'a %s without memory fails, and the next one succeeds',
    async (call) => {
      bed = await openMemory(way);
      const { remote } = await lend(bed, 'from server', new ArrayBuffer(64), { read: true, write: true });
      vi.spyOn(OpenProtectionDomain.prototype, 'allocBuffer').mockImplementationOnce(() => {
        throw new VerbsError('refused', 'the system has no memory');
      });
      const error = await caught(remote[call](new Uint8Array(8)));
      expect(error).toMatchObject({ code: Status.RESOURCE_EXHAUSTED, processed: 'no' });
      expect(error.message).toContain('the system has no memory');
      await remote[call](new Uint8Array(8));
    },
  );
});
