/**
 * Tests that rights end by close(), by the time limit, because a peer does not answer, and with the session.
 */
import { Status } from 'rdma-rpc';
import { connectMemory } from 'rdma-rpc/memory';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Kind } from '../../runtime/memory/wire.ts';
import { Hostile } from './hostile.ts';
import {
  type BedOptions,
  caught,
  directions,
  lend,
  memoryWays,
  openMarket,
  openMemory,
} from './memory-bed.ts';

let closing: (() => unknown)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const close of closing.reverse()) await close();
  closing = [];
});
async function opened(way: (typeof memoryWays)[number], options: BedOptions = {}) {
  const bed = await openMemory(way, options);
  closing.push(() => bed.close());
  return bed;
}
/** Stops time for timers, while sockets and queue pairs continue. */
function ownTime(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
/** expect.poll would use timers, and timers stand still here. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}

const rights = { read: true, write: true } as const;
const word = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);
const cells = memoryWays.flatMap((way) => directions.map((direction) => [way, direction] as const));

describe.each(cells)('%s, %s', (way, direction) => {
  test('after close() nothing is done, and other memory goes on', async () => {
    const bed = await opened(way);
    const { exposure, remote } = await lend(bed, direction, new ArrayBuffer(64), rights);
    const other = await lend(bed, direction, new ArrayBuffer(64), rights);
    await remote.write(word);
    await exposure.close();
    expect(exposure.closed).toBe(true);
    expect(await exposure.ended).toBe('it was closed');
    expect(remote.closed).toBe(true);
    for (const operation of [remote.write(word, 8), remote.read(new Uint8Array(8))]) {
      expect(await caught(operation)).toMatchObject({ code: Status.FAILED_PRECONDITION, processed: 'no' });
    }
    expect([...exposure.bytes.subarray(0, 16)]).toEqual([...word, 0, 0, 0, 0, 0, 0, 0, 0]);
    const user = direction === 'from client' ? bed.server : bed.client;
    expect(await caught(user.open(exposure.handle))).toMatchObject({ code: Status.NOT_FOUND });
    await other.remote.write(word);
    await exposure.close();
  });

  test('close() during a transfer: when it has ended, no byte moves', async () => {
    const bed = await opened(way);
    const { exposure, remote } = await lend(bed, direction, new ArrayBuffer(16 << 20), rights);
    const user = direction === 'from client' ? bed.server : bed.client;
    const local = user.alloc(16 << 20);
    local.bytes.fill(1);
    const writes = Promise.allSettled([remote.write(local.bytes), remote.write(local.bytes)]);
    await turn();
    await exposure.close();
    exposure.bytes.fill(2);
    expect((await writes).map(({ status }) => status)).toContain('rejected');
    await turn();
    expect(exposure.bytes.every((byte) => byte === 2)).toBe(true);
    // The peer has answered, so no operation has failed.
    const other = await lend(bed, direction, new ArrayBuffer(8), rights);
    await other.remote.write(word);
  });

  test('the time limit ends the rights', async () => {
    const bed = await opened(way, { memory: { revokeMs: 1000 } });
    ownTime();
    const { exposure, remote } = await lend(bed, direction, new ArrayBuffer(64), {
      ...rights,
      expiresMs: 10_000,
    });
    vi.advanceTimersByTime(8999);
    await remote.write(word);
    vi.advanceTimersByTime(1);
    await until(() => exposure.closed);
    expect(remote.closed).toBe(true);
    expect(await caught(remote.write(word, 8))).toMatchObject({ code: Status.FAILED_PRECONDITION });
    expect(exposure.bytes[8]).toBe(0);
    const { remote: next } = await lend(bed, direction, new ArrayBuffer(8), rights);
    await next.write(word);
  });

  test('memory that the peer has not opened ends at once', async () => {
    const bed = await opened(way);
    const owner = direction === 'from client' ? bed.client : bed.server;
    const exposure = owner.expose(new ArrayBuffer(8), rights);
    void exposure.close();
    expect(exposure.closed).toBe(true);
  });

  test('the end of the session ends everything', async () => {
    const bed = await opened(way);
    const { exposure, remote } = await lend(bed, direction, new ArrayBuffer(1 << 20), rights);
    const endless = async (): Promise<never> => {
      for (;;) await remote.read(new Uint8Array(1 << 20));
    };
    const waiting = caught(endless());
    await bed.channel.close();
    await exposure.ended;
    await Promise.all([bed.client.ended, bed.server.ended]);
    expect(await waiting).toMatchObject({ code: Status.UNAVAILABLE });
    expect(await caught(remote.write(word))).toMatchObject({ code: Status.UNAVAILABLE });
    for (const memory of [bed.client, bed.server]) {
      expect(memory.closed).toBe(true);
      expect(() => memory.expose(new ArrayBuffer(8), rights)).toThrow(/UNAVAILABLE/);
      expect(() => memory.alloc(8)).toThrow(/UNAVAILABLE/);
    }
    expect(await caught(connectMemory(bed.channel))).toMatchObject({ code: Status.UNAVAILABLE });
  });

  test('after the end of the queue pair calls go on, and another one can be connected', async () => {
    const bed = await opened(way);
    const { exposure, remote } = await lend(bed, direction, new ArrayBuffer(8), rights);
    const { handle } = exposure;
    expect(await connectMemory(bed.channel)).toBe(bed.client);
    (direction === 'from client' ? bed.client : bed.server).close();
    await Promise.all([bed.client.ended, bed.server.ended, exposure.ended]);
    expect(await caught(remote.read(new Uint8Array(8)))).toMatchObject({ code: Status.UNAVAILABLE });
    await bed.trade({}, () => ({}));
    const client = await connectMemory(bed.channel);
    expect(await caught(client.open(handle))).toMatchObject({ code: Status.INVALID_ARGUMENT });
    expect(await caught(client.open({ exposer: new Uint8Array(8), id: -1 }))).toBeInstanceOf(TypeError);
    const own = client.expose(new ArrayBuffer(8), rights);
    expect(String(await caught(client.open(own.handle)))).toMatch(/this side has exposed/);
  });
});

describe.each(memoryWays)('%s: a peer that does not answer', (way) => {
  async function silent(memory: BedOptions['memory']) {
    const market = await openMarket(way, memory === undefined ? {} : { memory });
    closing.push(() => market.close());
    await market.channel.ready();
    const hostile = await Hostile.connect(market.channel);
    closing.push(() => hostile.close());
    await hostile.hello();
    return { ...market, hostile };
  }

  test('loses the memory at the end of its time, and keeps the rest', async () => {
    const { hostile, trade } = await silent({ revokeMs: 700 });
    ownTime();
    await trade({}, async (_, server) => {
      const exposure = server!.expose(new ArrayBuffer(8), rights);
      const { value: key, position } = await hostile.open(exposure);
      const closed = exposure.close();
      await until(() => hostile.messages.some(({ kind }) => kind === Kind.revoke));
      vi.advanceTimersByTime(699);
      await turn();
      expect(exposure.closed).toBe(false);
      vi.advanceTimersByTime(1);
      await closed;
      expect(await exposure.ended).toMatch(/did not answer in 700 ms \(option revokeMs\)/);
      expect(server!.closed).toBe(false);
      hostile.local.bytes.fill(9);
      hostile.post(hostile.write(key, position));
      expect(await hostile.ended).toMatch(/longer than its option revokeMs/);
      await server!.ended;
      expect(exposure.bytes.every((byte) => byte === 0)).toBe(true);
      return {};
    });
    await trade({}, () => ({}));
  });

  test('loses it at the time limit to the millisecond', async () => {
    const { hostile, trade } = await silent({ revokeMs: 700 });
    ownTime();
    await trade({}, async (_, server) => {
      const exposure = server!.expose(new ArrayBuffer(8), { ...rights, expiresMs: 1001 });
      await hostile.open(exposure);
      vi.advanceTimersByTime(1000);
      await turn();
      expect(exposure.closed).toBe(false);
      vi.advanceTimersByTime(1);
      expect(await exposure.ended).toMatch(/did not answer in 501 ms \(half of expiresMs\)/);
      return {};
    });
  });
});
