/**
 * Tests the key-value example over the runtime: statuses, the load's checks, the counters of every path, and
 * the demo's two processes.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Client, createChannel, createClient, createServer, RpcError, Status, stats } from 'rdma-rpc';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type KvClient, KvDefinition, type KvHandlers } from '../../examples/kv/gen/kv.rdma.ts';
import { runLoad, type SizeClass } from '../../examples/kv/load.ts';
import { kvHandlers } from '../../examples/kv/service.ts';
import { messageMax } from '../../examples/kv/sizes.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const socket = `unix:/tmp/rdma-rpc-kv-test-${process.pid}`;
const noCounters = () => ({});
const quiet = () => {};
let sockets = 0;

/** Runs `use` with a client. The client's server has these handlers and is in this process. */
async function withKv<T>(handlers: KvHandlers, use: (kv: KvClient) => Promise<T>): Promise<T> {
  const server = createServer({ messageMaxBytes: messageMax }).add(KvDefinition, handlers);
  const channel = createChannel(await server.listen(`${socket}-${++sockets}.sock`), {
    messageMaxBytes: messageMax,
  });
  try {
    const kv: Client<typeof KvDefinition> = createClient(KvDefinition, channel);
    return await use(kv);
  } finally {
    await channel.close();
    await server.shutdown({ graceMs: 100 });
  }
}

function size(label: string, valueBytes: number): SizeClass {
  return { label, valueBytes, workers: 4, operations: 25 };
}

describe('the service', () => {
  it('gets the value that was put, until it is deleted', async () => {
    await withKv(kvHandlers(MiB, noCounters), async (kv) => {
      const value = Uint8Array.of(1, 2, 3);
      expect(await kv.get({ key: 'a' })).toMatchObject({ found: false });
      expect(await kv.put({ key: 'a', version: 7, value })).toMatchObject({ replaced: false });
      expect(await kv.get({ key: 'a' })).toMatchObject({ found: true, version: 7, value });
      expect(await kv.put({ key: 'a', version: 8, value })).toMatchObject({ replaced: true });
      expect(await kv.delete({ key: 'a' })).toMatchObject({ deleted: true });
      expect(await kv.stats({})).toMatchObject({ entries: 0, bytes: 0n, hits: 1n, misses: 1n, refused: 0n });
    });
  });

  it.each([
    ['an empty key', '', 1, Status.INVALID_ARGUMENT, /1 to 256/],
    ['a key of 257 characters', 'k'.repeat(257), 1, Status.INVALID_ARGUMENT, /257/],
    ['a value beyond the budget', 'k', 64 * KiB, Status.RESOURCE_EXHAUSTED, /KV_BUDGET_MIB/],
  ])('refuses %s', async (_, key, bytes, code, text) => {
    await withKv(kvHandlers(16 * KiB, noCounters), async (kv) => {
      const refused = await kv
        .put({ key, version: 1, value: new Uint8Array(bytes) })
        .catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(RpcError);
      expect(refused).toMatchObject({ code, message: expect.stringMatching(text) });
    });
  });
});

describe('the load', () => {
  it('finds no fault in a correct server, and payloads have used every path', async () => {
    await withKv(kvHandlers(64 * MiB, noCounters), async (kv) => {
      const before = stats();
      const sizes = [size('16 B', 16), size('4 KiB', 4 * KiB), size('64 KiB', 64 * KiB), size('1 MiB', MiB)];
      const report = await runLoad(kv, sizes, quiet);
      expect(report.errors).toEqual([]);
      expect(report.rows).toHaveLength(15);
      expect(report.rows.every((row) => row.calls > 0 && row.errors === 0)).toBe(true);
      expect((await kv.stats({})).entries).toBe(0);
      const after = stats();
      const ways = [
        'inlineSends',
        'eagerSends',
        'bulkReads',
        'bulkReadBytes',
        'bulkWrites',
        'bulkWriteBytes',
        'mrHits',
      ] as const;
      for (const way of ways) expect({ [way]: after[way] }, way).not.toEqual({ [way]: before[way] });
      expect(after.protocolErrors).toBe(before.protocolErrors);
    });
  });

  /** Faults that a server could have, each with the words with which the load must report it. */
  const faults: Record<string, (right: KvHandlers) => Partial<KvHandlers>> = {
    'wrong bytes': (right) => ({
      get: async (request, context) => {
        const answer = await right.get(request, context);
        const value = Uint8Array.from(answer.value ?? []);
        if (value.length > 0) value[value.length - 1]! ^= 1;
        return { ...answer, value };
      },
    }),
    instead: (right) => ({
      get: async (request, context) => ({ ...(await right.get(request, context)), version: 999_999 }),
    }),
    lost: () => ({ get: () => ({ found: false }) }),
    'deleted is': () => ({ delete: () => ({ deleted: false }) }),
    'replaced is': (right) => ({
      put: async (request, context) => ({ replaced: !(await right.put(request, context)).replaced }),
    }),
  };
  it.each(Object.entries(faults))('notices a server whose answers are wrong: %s', async (words, fault) => {
    const right = kvHandlers(MiB, noCounters);
    await withKv({ ...right, ...fault(right) }, async (kv) => {
      const report = await runLoad(kv, [size('16 B', 16)], quiet);
      expect(report.errors.some((error) => error.includes(words))).toBe(true);
      expect(report.rows.some((row) => row.errors > 0)).toBe(true);
    });
  });
});

describe('the demo', () => {
  const demo = fileURLToPath(new URL('../../dist/examples/kv/demo.js', import.meta.url));
  let output = '';
  let code: number | undefined;

  beforeAll(async () => {
    expect(existsSync(demo), 'dist/examples/kv/demo.js is missing: run node scripts/setup.mjs').toBe(true);
    try {
      output = (await promisify(execFile)(process.execPath, [demo, '0.02'])).stdout;
      code = 0;
    } catch (error) {
      const failed = error as { code: number; stdout: string; stderr: string };
      code = failed.code;
      output = failed.stdout + failed.stderr;
    }
  });

  afterAll(() => {
    expect(output).not.toContain('undefined');
  });

  it('names the fabric that it has used', () => {
    expect(output).toMatch(/^client \d+ over shm \(\w+\)$/m);
  });

  it('ends in sentences, without a stack, when the server cannot start', async () => {
    const env = { ...process.env, RDMA_RPC_FABRIC: 'carrier-pigeon' };
    const ended = promisify(execFile)(process.execPath, [demo, '0.02'], { env });
    const { code, stderr } = await ended.then(
      () => ({ code: 0, stderr: '' }),
      (error: unknown) => error as { code: number; stderr: string },
    );
    expect(code).toBe(1);
    expect(stderr.trim().split('\n')).toEqual([
      expect.stringMatching(/^the server cannot start: .*RDMA_RPC_FABRIC.*carrier-pigeon/),
      'the demo is over: the server ended with code 1 before it listened',
    ]);
  });

  it('runs as two processes and finds every value right', () => {
    expect(output).toContain('every value was the right one');
    expect(code).toBe(0);
  });

  it.each(['Get', 'Put', 'Delete'])('has a line for %s of 64 MiB', (operation) => {
    expect(output).toMatch(new RegExp(`^${operation} +64 MiB`, 'm'));
  });

  it.each(['inline', 'eager', 'READs by the server', 'WRITEs by the server', 'cache: hits'])(
    'counted payloads that went that way: %s',
    (way) => {
      const line = output.split('\n').find((each) => each.includes(way)) ?? '';
      const counts = line
        .trim()
        .split(/\s{2,}/)
        .slice(1)
        .map((cell) => Number(cell.replaceAll(',', '')));
      expect(counts).toHaveLength(2);
      expect(Math.max(...counts)).toBeGreaterThan(0);
    },
  );
});
