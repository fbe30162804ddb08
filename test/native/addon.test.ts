/**
 * Tests the addon by itself, below the runtime: shared memory and its lifetimes, the event loop, threads, and
 * every way in which a context can end.
 */
import { spawnSync } from 'node:child_process';
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { EvKind, loadNative, type NativeOptions, Reason, SubOp, Use } from '../../runtime/native/native.ts';
import { runs } from '../extent.ts';
import { until } from '../outcomes.ts';
import { acceptor, Loopback } from './loopback.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const majorCollection = constants.NODE_PERFORMANCE_GC_MAJOR;
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const programs = fileURLToPath(new URL('../../dist/test/native/programs.js', import.meta.url));
const pattern = (bytes: number) => Uint8Array.from({ length: bytes }, (_, i) => (i * 7 + (i >> 8)) & 0xff);

const open: Loopback[] = [];
let accepting: Awaited<ReturnType<typeof acceptor>>;
beforeAll(async () => {
  accepting = await acceptor();
});
afterAll(() => accepting.server.close());

function loopback(fabric: NativeOptions['fabric'], options: Partial<NativeOptions> = {}): Loopback {
  const made = new Loopback(fabric, options, fabric === 'tcp' ? accepting.port : 0);
  open.push(made);
  return made;
}
afterEach(() => {
  for (const each of open.splice(0)) each.native.close();
});

/**
 * Runs iterations of the event loop until the condition holds. If the condition never holds, the test's own
 * time limit ends the wait.
 */

describe.each([
  ['sim', 'libuv'],
  ['shm', 'libuv'],
  ['tcp', 'libuv'],
  ['sim', 'thread'],
  ['shm', 'thread'],
  ['tcp', 'thread'],
] as const)('calls on %s, woken by %s', (fabric, loop) => {
  test.each([0, 1, 200, 1024, 1025, 9000, 1_500_000])('echo %i bytes', async (bytes) => {
    const pair = loopback(fabric, { loop });
    const end = await pair.start(pattern(bytes)).end;
    expect(end.kind).toBe(EvKind.settled);
    expect(Buffer.compare(end.message, pattern(bytes))).toBe(0);
    await until(() => pair.native.stats().arenaLeasedBlocks === 0);
  });

  test('many in flight, then none left', async () => {
    const pair = loopback(fabric, { loop });
    for (let round = 0; round < 50; round += 1) {
      const ends = Array.from({ length: 16 }, (_, i) => pair.start(pattern(i % 4 === 3 ? 3000 : 20)).end);
      for (const end of await Promise.all(ends)) expect(end.kind).toBe(EvKind.settled);
    }
    await until(() => pair.native.stats().arenaLeasedBlocks === 0);
    expect(pair.native.sessionInfo(pair.client).callsInFlight).toBe(0);
    expect(pair.native.stats().protocolErrors).toBe(0);
  });

  test('an idle session sleeps: it does not keep the event loop alive', async () => {
    const pair = loopback(fabric, { loop });
    const { native } = pair;
    await pair.start(pattern(20)).end;
    const { sleeps } = native.stats();
    await until(() => native.stats().sleeps > sleeps);
    const { turns } = native.stats();
    for (let i = 0; i < 10_000; i += 1) await turn();
    // The remaining iterations are periodic housekeeping of the addon.
    expect(native.stats().turns - turns).toBeLessThan(100);
  });

  test('a cancelled call ends, whatever memory it has exposed', async () => {
    const pair = loopback(fabric, { loop });
    pair.onRequest = (request) => {
      if (request.region > 0) pair.native.releaseBlock(request.region);
    };
    for (const bytes of [8, 3000]) {
      const { call, end } = pair.start(pattern(bytes));
      await turn();
      pair.native.cancel(pair.client, call, Reason.cancelled);
      expect([EvKind.failed, EvKind.settled]).toContain((await end).kind);
    }
    await until(() => pair.native.stats().arenaLeasedBlocks === 0);
  });

  test('closing a session fails its calls, then reports that it is down', async () => {
    const pair = loopback(fabric, { loop });
    pair.onRequest = () => undefined;
    const ends = [8, 3000].map((bytes) => pair.start(pattern(bytes)).end);
    await turn();
    pair.native.closeSession(pair.client, 'enough');
    for (const end of await Promise.all(ends))
      expect([end.kind, end.reason]).toEqual([EvKind.failed, Reason.sessionLost]);
    await until(() => pair.down.includes(pair.client));
    await turn(); // The session is removed only after the callback that reported its end has returned.
    expect(() => pair.native.sessionInfo(pair.client)).toThrow('no such session');
  });
});

describe('buffers', () => {
  test('a released and reused block is the same ArrayBuffer', () => {
    const { native } = loopback('sim');
    const block = native.allocBlock(5000, Use.application);
    const buffer = native.blockBuffer(block);
    expect(native.blockBuffer(block)).toBe(buffer);
    native.releaseBlock(block);
    expect(native.allocBlock(5000, Use.application)).toBe(block);
    expect(native.blockBuffer(block)).toBe(buffer);
    expect(native.blockOf(buffer)).toBe(block);
  });

  test('memory of a block is available at once, and identifies the block', () => {
    const { native } = loopback('sim');
    const buffer = native.allocBuffer(5000, Use.application)!;
    const block = native.blockOf(buffer);
    expect([buffer.byteLength >= 5000, native.blockBuffer(block) === buffer]).toEqual([true, true]);
    native.releaseBlock(block);
    expect(native.allocBuffer(5000, Use.application)).toBe(buffer);
    expect(native.allocBuffer(native.arenaBytes + 1, Use.application)).toBeUndefined();
  });

  test.each([
    ['beyond the scratch buffer', [0, 4000, 97]],
    ['from behind the scratch buffer', [0, 4097, 0]],
    ['of a length below 0, in the scratch buffer', [0, 0, -1]],
    ['of a number that no block has', [77_777, 0, 1]],
    ['beyond its block', [undefined, 4000, 5000]],
    ['from behind its block', [undefined, 1 << 30, 1]],
    ['of a length below 0', [undefined, 0, -1]],
  ])('a gather entry in words %s is refused, and keeps its block', (_, [block, offset, bytes]) => {
    const { native, client } = loopback('sim');
    const own = native.allocBlock(5000, Use.application);
    native.gatherEntries.set([block ?? own, offset!, bytes!, 0]);
    expect(() =>
      native.submitBulk(SubOp.request, client, 0, 300, -1, 0, 0, 1, own, 0, Use.request, 0),
    ).toThrow('not in a block');
    expect(native.stats().arenaLeasedBlocks).toBe(1);
  });

  test('a block whose buffer was collected is free again', async () => {
    const { native } = loopback('sim');
    for (let i = 0; i < 20; i += 1) native.blockBuffer(native.allocBlock(5000, Use.application));
    expect(native.stats().arenaLeasedBlocks).toBe(20);
    await until(() => {
      collect();
      return native.stats().arenaLeasedBlocks === 0;
    });
  });

  test('a view keeps its block leased', async () => {
    const { native } = loopback('sim');
    const view = new Uint8Array(native.blockBuffer(native.allocBlock(5000, Use.application)), 100, 10).fill(
      9,
    );
    for (let i = 0; i < 5; i += 1) {
      collect();
      await turn();
    }
    expect(native.stats().arenaLeasedBlocks).toBe(1);
    expect(view.every((byte) => byte === 9)).toBe(true);
  });

  test('a block released twice is released once', () => {
    const { native } = loopback('sim');
    const block = native.allocBlock(5000, Use.application);
    native.releaseBlock(block);
    native.releaseBlock(block);
    native.releaseBlock(0x7fff_ffff);
    expect(native.stats().arenaLeasedBlocks).toBe(0);
    expect(() => native.blockBuffer(block)).toThrow('no such block');
  });

  test('everything is detached when the context closes', () => {
    const { native, client } = loopback('sim');
    const buffers = [
      native.sendSlab,
      native.receiveWindow(client, 0),
      native.blockBuffer(native.allocBlock(5000, Use.application)),
    ];
    const arrays = [native.control, native.submissions, native.events, native.freeSlots, native.clock];
    native.close();
    expect(buffers.map((buffer) => buffer.byteLength)).toEqual([0, 0, 0]);
    expect(arrays.map((array) => array.length)).toEqual([0, 0, 0, 0, 0]);
  });

  test('receives of sessions cause no garbage collections', async () => {
    const limits = { inflightMax: 256, messageMaxBytes: 4 << 20, peerMessageMaxBytes: 4 << 20 };
    /**
     * Returns the number of full collections that happen while sessions with much memory are created and
     * their first messages are read.
     */
    const collections = async (): Promise<number> => {
      const { native } = loopback('sim', { slotBytes: 8 << 10 });
      collect();
      const seen: PerformanceEntry[] = [];
      const observer = new PerformanceObserver((list) => seen.push(...list.getEntries()));
      observer.observe({ entryTypes: ['gc'] });
      const counted = process.memoryUsage().external;
      // Together, their receives have twice the size by which V8 lets external memory grow before it collects
      // everything.
      for (let i = 0; i < 64; i += 1) {
        const session = native.createSession({ role: 'client', ...limits });
        expect(native.receiveWindow(session, 3)).toBe(native.receiveWindow(session, 0));
      }
      expect(process.memoryUsage().external - counted).toBeLessThan(4 << 20);
      for (let turns = 0; turns < 1000; turns += 1) await turn();
      observer.disconnect();
      const kinds = seen.map(
        (entry) => (entry as PerformanceEntry & { detail: { kind: number } }).detail.kind,
      );
      return kinds.filter((kind) => kind === majorCollection).length;
    };
    // A collection may happen at that moment for another reason, such as an earlier test, but not in every
    // repetition.
    const found: number[] = [];
    for (let i = 0; i < 4 && !found.includes(0); i += 1) found.push(await collections());
    expect(found).toContain(0);
  });

  test('V8 counts only the receives that have been read, until their session is down', async () => {
    const pair = loopback('sim');
    const counted = () => process.memoryUsage().external;
    const slots = [0, 3, 4, 7, 8, 200, 255];
    /** Returns the bytes that V8 counts too many or too few: for each window, and after the session's end. */
    const deviations = async () => {
      const session = pair.native.createSession({
        role: 'client',
        inflightMax: 256,
        messageMaxBytes: 4 << 20,
        peerMessageMaxBytes: 4 << 20,
      });
      // The garbage of earlier tests is freed in several iterations.
      for (let i = 0; i < 10; ++i) {
        collect();
        await turn();
      }
      const before = counted();
      const grown: number[] = [];
      const windows = slots.map((slot) => {
        collect();
        const counts = counted();
        const window = pair.native.receiveWindow(session, slot);
        grown.push(counted() - counts);
        return window;
      });
      // The first window has 4 slots, and the second has 4 slots, too.
      expect(windows[1]).toBe(windows[0]);
      expect(windows[2]!.byteLength).toBe(windows[0]!.byteLength);
      expect(windows[3]).toBe(windows[2]);
      expect(windows[4]!.byteLength).toBe(2 * windows[0]!.byteLength);
      expect(windows[6]).toBe(windows[5]);
      const perWindow = windows.map(
        (window, i) => grown[i]! - (windows.indexOf(window) === i ? window.byteLength : 0),
      );
      pair.native.closeSession(session, 'enough');
      await until(() => pair.down.includes(session));
      await turn();
      expect(windows.map(({ byteLength }) => byteLength)).toEqual(slots.map(() => 0));
      const left = counted() - before;
      return [...perWindow, left < 10_000 ? 0 : left];
    };
    // The garbage of other code is collected at any time, but not in every repetition.
    const none = [...slots.map(() => 0), 0];
    const found: number[][] = [];
    for (let i = 0; i < 4 && !found.some((each) => each.every((bytes) => bytes === 0)); ++i)
      found.push(await deviations());
    expect(found).toContainEqual(none);
    expect(pair.native.receiveWindow(pair.server, 1 << 20)).toBeUndefined();
  });

  test('calls that wait for arena memory continue when forgotten leases are collected', async () => {
    const pair = loopback('sim', { arenaBytes: 4 << 20 });
    const { end } = pair.start(pattern(3000));
    // Before the server sees the request, all memory is in leases that nothing refers to and that have not
    // been released.
    const forget = () => {
      let block = pair.native.allocBlock(4096, Use.application);
      for (; block !== 0; block = pair.native.allocBlock(4096, Use.application))
        pair.native.blockBuffer(block);
    };
    forget();
    expect((await end).kind).toBe(EvKind.settled);
  });
});

test('all that request garbage collections share a tenth of the time of their thread', () => {
  const native = loadNative();
  const before = native.collectionWaitMs();
  native.collectionDone(100);
  // A call that is tried again and again has no advantage.
  for (let i = 0; i < 3; ++i) expect(native.collectionWaitMs()).toBeGreaterThan(before + 200);
  expect(native.collectionWaitMs()).toBeLessThanOrEqual(before + 900);
});

describe('RDMA devices', () => {
  test('are reported, or the reason why none was found', () => {
    const { devices, whyNone } = loadNative().verbsDevices(0);
    expect(whyNone === '').toBe(devices.length > 0);
    if (devices.length === 0) expect(whyNone).toMatch(/verbs is off: |no RDMA device/);
  });

  test('a missing one cannot be opened, and the error names it', () => {
    expect(() => loopback('verbs', { verbs: { device: 'nobodys0' } })).toThrow(/verbs is off/);
  });
});

describe('the end of a context', () => {
  test('later calls throw or do nothing', () => {
    const { native, client } = loopback('sim');
    native.close();
    expect(() => native.allocBlock(1, Use.application)).toThrow('context is closed');
    expect(() =>
      native.createSession({ role: 'client', inflightMax: 1, messageMaxBytes: 1, peerMessageMaxBytes: 1 }),
    ).toThrow('context is closed');
    expect(() => native.stats()).toThrow('context is closed');
    native.flush();
    native.cancel(client, 0, Reason.cancelled);
    native.closeSession(client, '');
    native.releaseBlock(1);
    native.close();
  });

  test.each(['libuv', 'thread'] as const)('a hundred contexts open and close, woken by %s', async (loop) => {
    for (let i = 0; i < 100; i += 1) {
      const pair = new Loopback('sim', { loop });
      const ends = [pair.start(pattern(8)).end, pair.start(pattern(3000)).end];
      if (i % 2 === 0) await Promise.all(ends);
      pair.native.close();
    }
    await turn();
  });

  describe.each(['libuv', 'thread'])('woken by %s', (loop) => {
    const env = { ...process.env, RDMA_RPC_TEST_LOOP: loop };

    test.each([
      ['callback-throws', 'caught: thrown in the events callback'],
      ['exit-with-calls-in-flight', ''],
      ['exit-with-calls-in-flight-shm', ''],
      ['end-without-close', ''],
      ['close-in-callback', 'closed in the callback'],
      ['calls-now-and-then', 'slept and woke'],
    ])('of a process: %s', (name, output) => {
      const done = spawnSync(process.execPath, [programs, name], { encoding: 'utf8', timeout: 20_000, env });
      expect({
        status: done.status,
        signal: done.signal,
        output: done.stdout.trim(),
        errors: done.stderr,
      }).toEqual({
        status: 0,
        signal: null,
        output,
        errors: '',
      });
    });

    test(`of a thread, terminated in the middle of its calls, ${runs(200)} times`, {
      timeout: 120_000,
    }, async () => {
      for (let i = 0; i < runs(200); i += 1) {
        const worker = new Worker(programs, { workerData: 'calls-for-ever', env });
        // Terminates some workers before they have begun, and most of them while calls are in progress.
        if (i % 8 !== 0) await new Promise((resolve) => worker.once('message', resolve));
        await worker.terminate();
      }
    });
  });
});
