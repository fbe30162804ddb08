/**
 * Tests the output of `rdma-rpc top` for two readings. The tests check rates, that tables fit, and that a
 * process or its peer cannot affect the terminal.
 */
import { describe, expect, it, test } from 'vitest';
import { plain, screenOf } from '../../../cli/top/screen.ts';
import { nextReading } from '../../../cli/top/top.ts';
import { viewOf } from '../../../cli/top/view.ts';
import type { Stats } from '../../../runtime/native/stats.ts';
import { bucketNs, context, method, reading, session } from './readings.ts';

const secondNs = 1e9;
const counted = (at: number, count: number): number[] =>
  bucketNs.map((_, bucket) => (bucket === at ? count : 0));

const before = reading({
  contexts: [
    context({
      counters: {
        requests: 1000,
        sentBytes: 5000,
        receivedBytes: 4000,
        sendSlotsFree: 1024,
        memoryBytes: 10_800_000,
      },
      methods: [method({ calls: 1000, buckets: counted(40, 1000) })],
      sessions: [session({ bytesIn: 4000, bytesOut: 5000 })],
    }),
  ],
});
const after = reading({
  atNs: 2 * secondNs,
  cpuMs: 2500,
  contexts: [
    context({
      counters: {
        requests: 21_000,
        sentBytes: 2_005_000,
        receivedBytes: 1_004_000,
        sendSlotsFree: 1000,
        memoryBytes: 10_800_000,
        arenaBytes: 2_000_000,
        arenaLeasedBytes: 65_536,
        arenaLeasedBlocks: 1,
        mrHits: 99,
        mrMisses: 1,
        stalls: 4,
        stalledMs: 20,
        loopLagMaxUs: 1500,
      },
      methods: [
        method({
          calls: 21_000,
          failed: 10,
          buckets: counted(40, 1000).map((count, at) => (at === 9 ? 20_000 : count)),
        }),
        method({ name: 'kv.v1.Kv/Put', calls: 5 }),
      ],
      sessions: [
        session({ bytesIn: 1_004_000, bytesOut: 2_005_000 }),
        session({ number: 4097, peer: '10.0.0.7:41230 (billing 3)', waiting: 2 }),
      ],
    }),
  ],
});

test('the first screen says when its figures come, and that there are no calls yet', () => {
  const first = reading({ contexts: [context({})] });
  const lines = screenOf(viewOf(first, first), { columns: 100, rows: 24 }, 'rates and latencies in 2 s');
  expect(lines[0]).toMatch(/^rdma-rpc top {3}\d+ \(rates and latencies in 2 s\) /);
  expect(lines.filter((line) => line === 'none yet')).toHaveLength(2);
});

describe('rates', () => {
  const view = viewOf(after, before);
  it('cover the time between the readings', () => {
    expect(view.perSecond.requests).toBe(10_000);
    expect(view.cpuPercent).toBe(75);
    expect(view.methods[0]).toMatchObject({
      method: 'kv.v1.Kv/Get',
      callsPerSecond: 10_000,
      failedPerSecond: 5,
    });
  });
  it('percentiles cover the calls in between, not earlier ones', () => {
    expect(view.methods[0]!.p50Us).toBeCloseTo(9.5, 1);
    expect(view.methods[0]!.p99Us).toBeLessThan(10);
    expect(view.methods[1]!.p50Us).toBeNull();
  });
  it('a restarted counter counts from zero, and never backwards', () => {
    const again = viewOf(
      reading({ atNs: 3 * secondNs, contexts: [context({ counters: { requests: 7 } })] }),
      after,
    );
    expect(again.perSecond.requests).toBe(7);
  });
  it('a new context has the rate of all its counts', () => {
    const first = viewOf(after, reading({ contexts: [] }));
    expect(first.perSecond.requests).toBe(10_500);
  });
  it('are separate for each context: a closed one takes nothing from the others, in any order', () => {
    const long = (given = {}) => context({ id: 7, counters: { requests: 50_000 }, ...given });
    const short = (requests: number) =>
      context({
        id: 8,
        counters: { requests },
        methods: [method({ calls: requests })],
        sessions: [session({ bytesIn: 10 * requests })],
      });
    const was = reading({ contexts: [long(), short(1000)] });
    const gone = viewOf(reading({ atNs: secondNs, contexts: [short(1300)] }), was);
    expect(gone.perSecond.requests).toBe(300);
    expect(gone.methods[0]!.callsPerSecond).toBe(300);
    expect(gone.sessions[0]!.inPerSecond).toBe(3000);
    const turned = viewOf(reading({ atNs: secondNs, contexts: [short(1300), long()] }), was);
    expect(turned.perSecond.requests).toBe(300);
    const another = viewOf(reading({ atNs: secondNs, contexts: [long(), context({ id: 9 })] }), was);
    expect(another.perSecond.requests).toBe(0);
  });
  it('cover events, not states', () => {
    const with_ = (counters: Partial<Stats>) => context({ counters });
    const view = viewOf(
      reading({ atNs: secondNs, contexts: [with_({ requests: 5, sendSlotsFree: 500, mrBytes: 80 })] }),
      reading({ contexts: [with_({ sendSlotsFree: 1000, mrBytes: 0 })] }),
    );
    expect(view.perSecond).toEqual({ requests: 5 });
    expect(view.counters).toEqual({ requests: 5, sendSlotsFree: 500, mrBytes: 80 });
  });
  it('of devices show those counters of errors that have grown', () => {
    const port = (out_of_sequence: number, more = {}) => ({
      device: 'mlx5_0',
      port: 1,
      counters: { out_of_sequence, np_cnp_sent: 5, port_xmit_data: 9 * out_of_sequence, ...more },
    });
    const seconds = viewOf(after, before).seconds;
    const devices = { before: [port(10)], now: [port(10 + 20 * seconds, { link_downed: 4 })] };
    const view = viewOf(after, before, devices);
    expect(view.devices).toEqual([
      {
        device: 'mlx5_0',
        port: 1,
        counters: { out_of_sequence: 10 + 20 * seconds, np_cnp_sent: 5, link_downed: 4 },
        perSecond: { out_of_sequence: 20 },
      },
    ]);
    const room = { columns: Infinity, rows: Infinity };
    expect(screenOf(view, room)).toContain('device     mlx5_0/1 out_of_sequence 20/s');
    const quiet = viewOf(after, before, { before: devices.before, now: devices.before });
    expect(screenOf(quiet, room).filter((line) => line.startsWith('device'))).toEqual([]);
    // A port that has just appeared, or whose driver was loaded again, shows at most the rate that its
    // counters give.
    expect(viewOf(after, before, { before: [], now: [port(10)] }).devices[0]!.perSecond).toEqual({});
  });
  it('two readings at the same moment cause no division by zero', () => {
    expect(viewOf(after, after).perSecond.requests).toBe(0);
  });
});

describe('the next reading', () => {
  it('comes from the same process', () => {
    const now = reading({ cpuMs: 1000 });
    expect(nextReading(before, () => now)).toBe(now);
  });
  it('is rejected from another process with the reused number, however long that has run', () => {
    const other = reading({ startTicks: 9000, cpuMs: 50_000 });
    expect(() => nextReading(before, () => other)).toThrow(/process 4711 has ended/);
  });
});

describe('the thread', () => {
  const line = (state: string, awake: boolean): string =>
    screenOf(
      viewOf(
        reading({ state, atNs: 4 * secondNs, contexts: [context({ awake, turnNs: secondNs })] }),
        before,
      ),
      {
        columns: 120,
        rows: 20,
      },
    )[1]!;
  const cases: readonly [string, boolean, string][] = [
    ['S', false, 'loop lag 0 us'],
    ['R', true, 'EVENT LOOP BLOCKED for 3 s'],
    ['T', true, 'STOPPED'],
    ['Z', false, 'ENDED'],
  ];
  for (const [state, awake, text] of cases)
    it(`in state ${state}, ${awake ? 'awake' : 'asleep'} for 3 s: ${text}`, () => {
      expect(line(state, awake)).toContain(text);
    });
});

describe('the screen', () => {
  const view = viewOf(after, before);
  it('matches the snapshot, 100 columns wide', async () => {
    const lines = screenOf(view, { columns: 100, rows: 24 });
    await expect(lines.join('\n')).toMatchFileSnapshot('screens/100x24.txt');
  });
  it('matches the snapshot, 60 columns wide and too low for all rows', async () => {
    const lines = screenOf(view, { columns: 60, rows: 14 });
    await expect(lines.join('\n')).toMatchFileSnapshot('screens/60x14.txt');
  });
  for (const columns of [20, 40, 80, 200])
    for (const rows of [2, 5, 12, 13, 15, 50])
      it(`fits ${columns} x ${rows}`, () => {
        const many = viewOf(
          reading({
            atNs: secondNs,
            contexts: [
              context({
                methods: Array.from({ length: 128 }, (_, at) => method({ name: `a.B/M${at}` })),
                sessions: Array.from({ length: 256 }, (_, number) => session({ number })),
              }),
            ],
          }),
          before,
        );
        const lines = screenOf(many, { columns, rows });
        expect(lines.length).toBeLessThanOrEqual(rows);
        for (const line of lines) expect([...line].length).toBeLessThanOrEqual(columns);
      });
  it('cuts nothing where lines have no limit', () => {
    const peer = `unix:/run/${'a'.repeat(300)}.sock (pid 77)`;
    const name = `kv.v1.${'B'.repeat(300)}/Get`;
    const long = reading({
      contexts: [context({ methods: [method({ name })], sessions: [session({ peer })] })],
    });
    const lines = screenOf(viewOf(long, long), { columns: Infinity, rows: Infinity });
    expect(lines.find((line) => line.startsWith(`${name} `))).toMatch(/ server .* 0$/);
    expect(lines.find((line) => line.startsWith(`${peer} `))).toMatch(/ server .* bytes +bound$/);
  });
  it('shows the number of further rows', () => {
    const sessions = Array.from({ length: 50 }, (_, number) => session({ number }));
    const many = viewOf(reading({ atNs: secondNs, contexts: [context({ sessions })] }), before);
    expect(screenOf(many, { columns: 100, rows: 24 }).at(-1)).toBe('… 42 more');
  });
  it('counts sessions that have no row in the page', () => {
    const sessions = Array.from({ length: 256 }, (_, number) => session({ number }));
    const counters = { sessions: 2000 };
    const many = viewOf(reading({ atNs: secondNs, contexts: [context({ sessions, counters })] }), before);
    expect(screenOf(many, { columns: 100, rows: 24 }).at(-1)).toBe('… 1992 more');
    expect(screenOf(many, { columns: 100, rows: Infinity }).at(-1)).toBe('… 1744 more');
  });
});

describe('hostile names', () => {
  const names = [
    '\u001b[2J\u001b]0;owned\u0007',
    'line\nline\rline',
    '\u009b31m',
    'a\u202egnp.exe',
    'zero\u200bwidth',
    'a\u0301\u0301\u0301\u0301',
    '\ud800 half',
  ];
  for (const name of names)
    it(`${JSON.stringify(name)} is one line of plain text everywhere`, () => {
      const hostile = reading({
        command: name,
        atNs: secondNs,
        contexts: [
          context({
            fabric: name,
            device: name,
            methods: [method({ name })],
            sessions: [session({ peer: name })],
          }),
        ],
      });
      const text = screenOf(viewOf(hostile, before), { columns: 120, rows: 40 });
      for (const line of text) expect(line).toBe(plain(line));
      expect(text).toHaveLength(16);
    });
});
