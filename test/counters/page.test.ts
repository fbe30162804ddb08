/** Counters pages: what this process writes and anybody of this user can read, and what is made of bytes that are no page. */
import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readlinkSync, writeSync } from 'node:fs';
import { createClient } from 'rdma-rpc';
import { bucketsSince, percentile, processesWithCounters, readCounters } from 'rdma-rpc/counters';
import { afterEach, describe, expect, test } from 'vitest';
import { contextIn } from '../../runtime/counters/page.ts';
import { caught, until } from '../outcomes.ts';
import { echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { openPair, type Pair, pairWays } from '../runtime/pair.ts';

let pair: Pair | undefined;
afterEach(async () => {
  await pair?.close();
  pair = undefined;
});

const pages = (): string[] =>
  readdirSync('/proc/self/fd')
    .map((name) => `/proc/self/fd/${name}`)
    .filter((path) => {
      try {
        return readlinkSync(path).includes('rdma-rpc-counters');
      } catch {
        return false;
      }
    });

describe.each(pairWays)('over %s', (way) => {
  test('calls are in the page by method, with their latencies, on both sides', async () => {
    pair = await openPair(way, (server) =>
      server.add(EchoDefinition, echoHandlers({ started: 0, aborted: [] })),
    );
    const client = createClient(EchoDefinition, pair.channel);
    for (let call = 0; call < 20; ++call) await client.echo({ text: 'x' });
    await caught(client.behave({ text: 'not found' }));
    const ours = () => {
      const contexts = readCounters(process.pid).contexts.filter(({ fabric }) => fabric === way);
      return contexts.flatMap((context) =>
        context.methods.map((method) => ({ ...method, bucketNs: context.bucketNs })),
      );
    };
    for (const side of ['client', 'server'] as const) {
      const echo = ours().find((method) => method.side === side && method.name.endsWith('/Echo'))!;
      expect(echo).toMatchObject({ name: EchoDefinition.methods.echo.fullName, calls: 20, failed: 0 });
      expect(echo.buckets.reduce((sum, count) => sum + count)).toBe(20);
      const p50 = percentile(echo.buckets, echo.bucketNs, 0.5)!;
      expect(p50).toBeLessThanOrEqual(percentile(echo.buckets, echo.bucketNs, 1)!);
      const fail = ours().find((method) => method.side === side && method.name.endsWith('/Behave'));
      expect(fail).toMatchObject({ calls: 1, failed: 1 });
    }
    await until(() => readCounters(process.pid).contexts.some(({ counters }) => (counters.calls ?? 0) >= 21));
  });

  test('sessions are there with who they are with, and go', async () => {
    pair = await openPair(way, (server) =>
      server.add(EchoDefinition, echoHandlers({ started: 0, aborted: [] })),
    );
    await createClient(EchoDefinition, pair.channel).echo({ text: 'x' });
    const sessions = () =>
      readCounters(process.pid)
        .contexts.filter(({ fabric }) => fabric === way)
        .flatMap((context) => context.sessions);
    await until(
      () => sessions().filter(({ state, framesIn }) => state === 'ready' && framesIn > 0).length === 2,
    );
    expect(
      sessions()
        .map(({ side }) => side)
        .sort(),
    ).toEqual(['client', 'server']);
    for (const session of sessions()) expect(session.peer).not.toBe('');
    await pair.close();
    pair = undefined;
    await until(() => pages().length === 0);
    expect(() => readCounters(process.pid)).toThrow(/has no counters of rdma-rpc/);
  });
});

describe('who may read', () => {
  test('the page is of this user alone, and nobody can write to it through a descriptor', async () => {
    pair = await openPair('shm', (server) =>
      server.add(EchoDefinition, echoHandlers({ started: 0, aborted: [] })),
    );
    await createClient(EchoDefinition, pair.channel).echo({ text: 'x' });
    const [path] = pages();
    const page = openSync(path!, 'r+');
    try {
      expect(fstatSync(page).mode & 0o777).toBe(0o600);
      expect(() => writeSync(page, 'x')).toThrow(/EPERM/);
    } finally {
      closeSync(page);
    }
    expect(processesWithCounters()).toContain(process.pid);
  });
  test.each([
    [2 ** 30, /there is no process/],
    [1, /process 1 (cannot be read|has no counters)/],
  ])('process %i: one sentence', (pid, sentence) => {
    expect(() => readCounters(pid)).toThrow(sentence);
  });
});

describe('bytes that are no page', () => {
  test('are none, wherever a page is cut, and whatever one bit of its head says', async () => {
    pair = await openPair('shm', (server) =>
      server.add(EchoDefinition, echoHandlers({ started: 0, aborted: [] })),
    );
    await createClient(EchoDefinition, pair.channel).echo({ text: 'x' });
    const page = new Uint8Array(readFileSync(pages()[0]!));
    expect(contextIn(page)).toBeDefined();
    for (const length of [0, 1, 7, 8, 15, 16, 63, 64, 100, 4096, 8192, 9000, page.length - 4096])
      expect(contextIn(page.subarray(0, length))).toBeUndefined();
    for (let at = 0; at < 600; ++at) {
      const changed = page.slice();
      changed[at]! ^= 1 << (at % 8);
      contextIn(changed);
    }
  });
});

describe('percentiles', () => {
  const bounds = [10, 20, 30, 40];
  test.each([
    [[0, 0, 0, 0], 0.5, undefined],
    [[4, 0, 0, 0], 0.5, 5],
    [[0, 4, 0, 0], 0.5, 15],
    [[1, 0, 0, 1], 1, 40],
    [[0, 0, 0, 9], 0, 30],
    [[90, 9, 1, 0], 0.99, 20],
  ])('of %j, share %d: %s', (buckets, share, expected) => {
    expect(percentile(buckets, bounds, share)).toBe(expected);
  });
  test('since an earlier reading, never below zero', () => {
    expect(bucketsSince([5, 1, 7], [3, 2])).toEqual([2, 0, 7]);
    expect(bucketsSince([5], undefined)).toEqual([5]);
  });
});
