/**
 * Tests the effects of operations, on each fabric and in both directions: bytes, rights, bounds, order and
 * notifications.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { RpcError, Status } from 'rdma-rpc';
import type { ExposeOptions, Remote, Written } from 'rdma-rpc/memory';
import { afterEach, describe, expect, test } from 'vitest';
import { caught, directions, lend, type MemoryBed, memoryWays, openMemory } from './memory-bed.ts';

let beds: MemoryBed[] = [];
afterEach(async () => {
  for (const bed of beds) await bed.close();
  beds = [];
});
async function opened(...given: Parameters<typeof openMemory>): Promise<MemoryBed> {
  const bed = await openMemory(...given);
  beds.push(bed);
  return bed;
}

const cells = memoryWays.flatMap((way) => directions.map((direction) => [way, direction] as const));
const everything = { read: true, write: true, atomic: true } as const;
const word = new Uint8Array(8);

const operations: Record<
  string,
  { right: 'read' | 'write' | 'atomic'; run: (remote: Remote, at?: number) => Promise<unknown> }
> = {
  read: { right: 'read', run: (remote, at = 0) => remote.read(word, at) },
  write: { right: 'write', run: (remote, at = 0) => remote.write(word, at) },
  writeWithImmediate: { right: 'write', run: (remote, at = 0) => remote.writeWithImmediate(word, at, 1) },
  fetchAdd: { right: 'atomic', run: (remote, at = 0) => remote.fetchAdd(at, 1n) },
  compareAndSwap: { right: 'atomic', run: (remote, at = 0) => remote.compareAndSwap(at, 0n, 0n) },
};

/** Returns numbers that are the same in each run (mulberry32). */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

describe.each(cells)('%s, %s', (way, direction) => {
  test('bytes are read and written in place, of any length, registered or not', async () => {
    const bed = await opened(way);
    const { exposure, remote } = await lend(bed, direction, new ArrayBuffer(3_000_000), everything);
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

  test('each right allows its operations and no other', async () => {
    const bed = await opened(way);
    for (const rights of [{ read: true }, { write: true }, { atomic: true }, everything] as ExposeOptions[]) {
      const { remote } = await lend(bed, direction, new ArrayBuffer(64), rights);
      for (const [name, { right, run }] of Object.entries(operations)) {
        if (rights[right] === true) await run(remote);
        else {
          const error = await caught(run(remote));
          expect(error, name).toMatchObject({ code: Status.PERMISSION_DENIED, processed: 'no' });
        }
      }
    }
  });

  test('bounds are checked before anything is posted', async () => {
    const bed = await opened(way);
    const { exposure, remote } = await lend(bed, direction, new ArrayBuffer(64), everything);
    for (const { run } of Object.values(operations)) {
      for (const at of [57, 64, 65, 2 ** 40]) {
        const error = await caught(run(remote, at));
        expect([RpcError, RangeError].some((type) => error instanceof type)).toBe(true);
      }
      for (const at of [-8, 0.5, Number.NaN, '8' as unknown as number])
        expect(await caught(run(remote, at))).toBeInstanceOf(RangeError);
    }
    expect(await caught(remote.read(new Uint8Array(65)))).toMatchObject({ code: Status.OUT_OF_RANGE });
    expect(await caught(remote.fetchAdd(4, 1n))).toBeInstanceOf(RangeError);
    expect(await caught(remote.fetchAdd(0, 1 as unknown as bigint))).toBeInstanceOf(TypeError);
    expect(await caught(remote.writeWithImmediate(word, 0, -1))).toBeInstanceOf(RangeError);
    expect(await caught(remote.read(new ArrayBuffer(8) as unknown as Uint8Array))).toBeInstanceOf(TypeError);
    await remote.write(new Uint8Array(0), 64);
    await remote.read(new Uint8Array(0), 64);
    expect(exposure.bytes.every((byte) => byte === 0)).toBe(true);
    expect(bed.client.closed || bed.server.closed).toBe(false);
  });

  test('atomics return the value before, and wrap at 64 bits', async () => {
    const bed = await opened(way);
    const { exposure, remote } = await lend(bed, direction, new BigUint64Array(2), { atomic: true });
    const before = await Promise.all(Array.from({ length: 500 }, () => remote.fetchAdd(8, 1n)));
    expect(before).toEqual(Array.from({ length: 500 }, (_, i) => BigInt(i)));
    expect(await remote.compareAndSwap(8, 499n, 7n)).toBe(500n);
    expect(await remote.compareAndSwap(8, 500n, 2n ** 64n - 1n)).toBe(500n);
    expect(await remote.fetchAdd(8, 2n)).toBe(2n ** 64n - 1n);
    const { buffer, byteOffset } = exposure.bytes;
    expect([...new BigUint64Array(buffer, byteOffset, 2)]).toEqual([0n, 1n]);
  });

  test('operations of one go take effect in their order', async () => {
    const bed = await opened(way);
    const bytes = 4096;
    const { exposure, remote } = await lend(bed, direction, new ArrayBuffer(bytes), everything);
    const model = new Uint8Array(bytes);
    const words = new BigUint64Array(model.buffer);
    const below = numbers(7);
    for (let round = 0; round < 10; ++round) {
      const checks: (() => void)[] = [];
      const begun = Array.from({ length: 60 }, async () => {
        const kind = below(3);
        const length = 1 + below(300);
        const at = below(bytes - length);
        if (kind === 0) {
          const from = new Uint8Array(length).fill(below(256));
          model.set(from, at);
          return remote.write(from, at);
        }
        if (kind === 1) {
          const into = new Uint8Array(length);
          const wanted = model.slice(at, at + length);
          checks.push(() => expect(into).toEqual(wanted));
          return remote.read(into, at);
        }
        const place = below(bytes / 8);
        const wanted = words[place]!;
        words[place] = wanted + 5n;
        return remote.fetchAdd(place * 8, 5n).then((found) => expect(found).toBe(wanted));
      });
      await Promise.all(begun);
      for (const check of checks) check();
      expect(exposure.bytes).toEqual(model);
    }
  });

  test('writeWithImmediate wakes a callback, which finds the bytes', async () => {
    const bed = await opened(way);
    const seen: (Written & { found: number })[] = [];
    const { exposure, remote } = await lend(bed, direction, new ArrayBuffer(200_000), {
      write: true,
      onWritten: (written) => seen.push({ ...written, found: exposure.bytes[written.offset]! }),
    });
    // The count exceeds the number of credits.
    const count = 300;
    await Promise.all(
      Array.from({ length: count }, (_, i) =>
        remote.writeWithImmediate(Uint8Array.of(i % 256), i, 2 ** 32 - 1 - i),
      ),
    );
    await remote.writeWithImmediate(new Uint8Array(150_000).fill(9), 1000, 0);
    await remote.writeWithImmediate(new Uint8Array(0), 5, 77);
    await expect.poll(() => seen.length).toBe(count + 2);
    expect(seen.slice(0, count)).toEqual(
      Array.from({ length: count }, (_, i) => ({
        offset: i,
        byteLength: 1,
        immediate: 2 ** 32 - 1 - i,
        found: i % 256,
      })),
    );
    expect(seen.slice(count)).toEqual([
      { offset: 1000, byteLength: 150_000, immediate: 0, found: 9 },
      { offset: 5, byteLength: 0, immediate: 77, found: 5 },
    ]);
  });

  test('an error of the callback becomes a warning, and the writes succeed', async () => {
    const bed = await opened(way);
    let calls = 0;
    const warned = new Promise((resolve) => process.once('warning', resolve));
    const { remote } = await lend(bed, direction, new ArrayBuffer(8), {
      write: true,
      onWritten: () => {
        ++calls;
        throw new Error('of the application');
      },
    });
    await remote.writeWithImmediate(word, 0, 0);
    await remote.writeWithImmediate(word, 0, 0);
    await expect.poll(() => calls).toBe(2);
    expect(String(await warned)).toContain('onWritten');
  });
});

test('onWritten runs in the root context, not in that of the owner or of the writer', async () => {
  const bed = await opened('shm');
  const user = new AsyncLocalStorage<string>();
  const users: (string | undefined)[] = [];
  const { remote } = await user.run('owner', () =>
    lend(bed, 'from client', new ArrayBuffer(8), {
      write: true,
      onWritten: () => users.push(user.getStore()),
    }),
  );
  await user.run('writer', () => remote.writeWithImmediate(word, 0, 0));
  await expect.poll(() => users).toEqual([undefined]);
});

describe('memory', () => {
  test('of SharedArrayBuffers and alloc stays where it is, other buffers are moved', async () => {
    const bed = await opened('shm');
    const shared = new SharedArrayBuffer(64);
    expect(bed.client.expose(shared, { read: true }).bytes.buffer).toBe(shared);
    const local = bed.client.alloc(64);
    const part = bed.client.expose(local.bytes.subarray(8, 16), { read: true });
    expect(part.bytes.buffer).toBe(local.bytes.buffer);
    expect([part.bytes.byteOffset, part.bytes.byteLength]).toEqual([8, 8]);
    const plain = new Uint8Array(64).fill(3);
    const moved = bed.client.expose(plain, { read: true });
    expect(plain.byteLength).toBe(0);
    expect(moved.bytes).toEqual(new Uint8Array(64).fill(3));
  });

  test.each<ExposeOptions>([{ write: true }, { atomic: true }])(
    'that a peer of shm could write after a stop in the middle is refused: %j',
    async (rights) => {
      const [bed, other, tcp] = [await opened('shm'), await opened('shm'), await opened('tcp')];
      const foreign = [new SharedArrayBuffer(64), other.client.alloc(64).bytes];
      for (const memory of foreign) {
        expect(() => bed.client.expose(memory, rights)).toThrow(
          /must be of alloc\(\) of the same PeerMemory/,
        );
        expect(bed.client.expose(memory, { read: true }).closed).toBe(false);
        expect(tcp.client.expose(memory, rights).closed).toBe(false);
      }
      const moved = bed.client.expose(new ArrayBuffer(64), rights);
      expect(bed.client.expose(moved.bytes, rights).bytes.buffer).toBe(moved.bytes.buffer);
    },
  );

  test('that is transferred while an operation waits fails that operation only', async () => {
    const bed = await opened('tcp');
    const { remote } = await lend(bed, 'from server', new ArrayBuffer(4_000_000), everything);
    const from = new Uint8Array(4_000_000).fill(1);
    const write = caught(remote.write(from));
    structuredClone(from.buffer, { transfer: [from.buffer] });
    expect(await write).toMatchObject({ code: Status.FAILED_PRECONDITION });
    await remote.write(word);
  });

  test('of a closed LocalMemory is used until its operations have ended', async () => {
    const bed = await opened('tcp');
    const { exposure, remote } = await lend(bed, 'from server', new ArrayBuffer(1_000_000), everything);
    const local = bed.client.alloc(1_000_000);
    local.bytes.fill(4);
    const write = remote.write(local.bytes);
    local.close();
    await write;
    expect(exposure.bytes.every((byte) => byte === 4)).toBe(true);
  });
});
