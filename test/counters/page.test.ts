/**
 * Tests counters pages: the page that this process writes, readers of the same user, and the handling of
 * invalid bytes.
 */
import {
  closeSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from 'rdma-rpc';
import { bucketsSince, percentile, processesWithCounters, readCounters } from 'rdma-rpc/counters';
import { afterEach, describe, expect, test } from 'vitest';
import { contextIn } from '../../runtime/counters/page.ts';
import { whyNoPage } from '../../runtime/counters/processes.ts';
import { caught, until } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { nativeWays, type Pair } from '../runtime/pair.ts';
import { echoPair } from './echo-pair.ts';
import { pages } from './pages.ts';

let pair: Pair | undefined;
afterEach(async () => {
  await pair?.close();
  pair = undefined;
});

describe.each(nativeWays)('over %s', (way) => {
  test('calls are in the page by method, with their latencies, on both sides', async () => {
    pair = await echoPair(way);
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

  test('sessions are listed with their peers, and removed', async () => {
    pair = await echoPair(way);
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

describe('access rights', () => {
  test('the page belongs to this user alone, and no process can write to it through a descriptor', async () => {
    pair = await echoPair('shm');
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
  test('pages of another version are distinguished from missing ones', async () => {
    const bytes = await ownPage();
    new DataView(bytes.buffer, bytes.byteOffset).setUint32(8, 2, true);
    expect(contextIn(bytes, 1)).toBeUndefined();
    const folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-page-'));
    try {
      const file = join(folder, 'page');
      writeFileSync(file, bytes);
      expect(whyNoPage(7, [file])).toBe(
        'process 7 has counters of version 2, and this rdma-rpc reads version 1; use the release of rdma-rpc that the process uses',
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
  test.each([
    [2 ** 30, /process \d+ does not exist/],
    [1, /process 1 (cannot be read|has no counters)/],
  ])('process %i: one sentence', (pid, sentence) => {
    expect(() => readCounters(pid)).toThrow(sentence);
  });
});

type Numbers = Record<'at' | 'rows' | 'stride' | 'textAt' | 'textBytes' | 'fields' | 'names', number>;
interface Forged extends Record<'counters' | 'sessions' | 'methods', Numbers> {
  device?: string;
  /** Bytes of the page that the description does not cover. */
  readonly end: number;
}

/**
 * Returns the part of this process's page from which counters are read, with one call in it. Events follow it
 * in the page.
 */
async function ownPage(): Promise<Uint8Array> {
  pair = await echoPair('shm');
  await createClient(EchoDefinition, pair.channel).echo({ text: 'x' });
  const page = new Uint8Array(readFileSync(pages()[0]!));
  return page.slice(0, layoutOf(page).events.countsAt);
}

const headBytes = 64;

function layoutOf(page: Uint8Array): Omit<Forged, 'end'> & { events: { countsAt: number } } {
  const text = page.subarray(headBytes, headBytes + new DataView(page.buffer).getUint32(12, true));
  return JSON.parse(new TextDecoder().decode(text)) as ReturnType<typeof layoutOf>;
}

/** Returns a copy of the page with a different description of itself. */
function forged(page: Uint8Array, change: (layout: Forged) => void): Uint8Array {
  const copy = page.slice();
  const head = new DataView(copy.buffer);
  const layout = layoutOf(page);
  change(Object.defineProperty(layout, 'end', { value: copy.length }) as unknown as Forged);
  const changed = new TextEncoder().encode(JSON.stringify(layout));
  copy.set(changed, headBytes);
  head.setUint32(12, changed.length, true);
  return copy;
}

describe('bytes that are not a page', () => {
  test('are refused, wherever a page is cut', async () => {
    const page = await ownPage();
    expect(contextIn(page, 1)).toBeDefined();
    for (const length of [0, 1, 7, 8, 15, 16, 63, 64, 100, 4096, 8192, 9000, page.length - 4096])
      expect(contextIn(page.subarray(0, length), 1)).toBeUndefined();
  });

  test.each<[string, (layout: Forged) => void]>([
    ['fabric is no text', (layout) => Object.assign(layout, { fabric: ['shm'] })],
    ['device is missing', (layout) => delete layout.device],
    ['counters are missing', (layout) => Object.assign(layout, { counters: undefined })],
    ['counters begin before the page', ({ counters }) => Object.assign(counters, { at: -8 })],
    ['counters begin behind the page', ({ counters }) => Object.assign(counters, { at: 2 ** 40 })],
    ['counters end behind the page', ({ counters, end }) => Object.assign(counters, { at: end - 8 })],
    ['names are none', ({ counters }) => Object.assign(counters, { names: { length: 1 } })],
    ['a name is no text', ({ counters }) => Object.assign(counters, { names: [1] })],
    ['a name is no name', ({ counters }) => Object.assign(counters, { names: ['__proto__'] })],
    ['sessions are missing', (layout) => Object.assign(layout, { sessions: null })],
    ['buckets begin before the row', ({ methods }) => Object.assign(methods, { bucketsAt: -8 })],
    [
      'buckets end behind the row',
      ({ methods }) => Object.assign(methods, { bucketsAt: methods.stride - 8 }),
    ],
    ['more buckets than the row has', ({ methods }) => Object.assign(methods, { buckets: 4096 })],
    ['a number of buckets that is none', ({ methods }) => Object.assign(methods, { buckets: 1.5 })],
    ['no bucket per octave', ({ methods }) => Object.assign(methods, { perOctave: 0 })],
    ['times beyond all numbers', ({ methods }) => Object.assign(methods, { perOctave: 1 })],
    ['a unit of no time', ({ methods }) => Object.assign(methods, { unitNs: 0 })],
    ['a unit of minutes', ({ methods }) => Object.assign(methods, { unitNs: 6e10 })],
    ...(['sessions', 'methods'] as const).flatMap((name): [string, (layout: Forged) => void][] => {
      const set = (what: string, change: (table: Numbers, end: number) => object) =>
        [
          `${name}: ${what}`,
          (layout: Forged) => Object.assign(layout[name], change(layout[name], layout.end)),
        ] as [string, (layout: Forged) => void];
      return [
        ...['at', 'rows', 'stride', 'textAt', 'textBytes'].flatMap((field) => [
          set(`${field} is missing`, () => ({ [field]: undefined })),
          set(`${field} is below 0`, () => ({ [field]: -1 })),
          set(`${field} is no whole number`, () => ({ [field]: 8.5 })),
          set(`${field} is no number`, () => ({ [field]: '8' })),
          set(`${field} is beyond all numbers`, () => ({ [field]: 1e300 })),
        ]),
        set('every row is the same one, with a long text', () => ({
          stride: 0,
          textBytes: 30_000,
          rows: 4096,
        })),
        set('rows overlap', ({ fields }) => ({ stride: 8 * (fields as unknown as string[]).length - 8 })),
        set('the text ends behind the row', ({ stride }) => ({ textAt: stride - 8, textBytes: 16 })),
        set('the last row ends behind the page', ({ stride, rows }, end) => ({
          at: end - stride * rows + 8,
        })),
        set('more rows than the page has', () => ({ rows: 4096 })),
        set('fields are missing', () => ({ fields: undefined })),
        set('fields are no names', () => ({ fields: [{}] })),
      ];
    }),
  ])('are none where the description is forged: %s', async (_, change) => {
    const page = await ownPage();
    expect(
      contextIn(
        forged(page, () => undefined),
        1,
      ),
    ).toEqual(contextIn(page, 1));
    expect(contextIn(forged(page, change), 1)).toBeUndefined();
  });

  test('are refused where the description is too long', async () => {
    const page = await ownPage();
    const long = new Uint8Array(page.length + 100_000);
    long.set(page);
    long.fill(0x20, 64 + new DataView(page.buffer).getUint32(12, true), long.length);
    new DataView(long.buffer).setUint32(12, 100_000, true);
    expect(contextIn(long, 1)).toBeUndefined();
  });
});

describe('bounds of buckets', () => {
  test("are an eighth of a call's time apart, and at least 256 ns", async () => {
    const { bucketNs } = contextIn(await ownPage(), 1)!;
    const units = (bucket: number): number => bucketNs[bucket]! / 256;
    // Each case has the duration of a call in units; native/telemetry/latencies.h defines the buckets.
    const cases = [
      [0, 1],
      [1, 2],
      [9, 3],
      [13, 4],
      [17, 5],
      [23, 8],
      [25, 9],
      [32, 16],
      [33, 18],
      [40, 32],
      [41, 36],
    ];
    for (const [bucket, bound] of cases) expect([bucket, units(bucket!)]).toEqual([bucket, bound]);
    for (const [bucket, bound] of bucketNs.entries())
      expect(bound).toBeGreaterThanOrEqual(bucketNs[bucket - 1] ?? 0);
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
