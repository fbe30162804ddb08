/**
 * Tests untrusted trace files, which are truncated, forged, or of another version. Each such file causes an
 * error of one sentence, and no file crashes or blocks the reader. The tests also read rings while they are
 * written.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chromeTrace } from '../../../cli/trace/chrome.ts';
import { eventsOfTrace } from '../../../cli/trace/events.ts';
import { traceIn } from '../../../cli/trace/file.ts';
import { textOf } from '../../../cli/trace/text.ts';
import { programOf } from '../../../cli/trace/trace.ts';
import { type TraceAbout, traceFile } from '../../../runtime/boundary/traces/trace-file.ts';
import { rowsOfRing } from '../../../runtime/counters/events.ts';
import { eventRowBytes } from '../../../runtime/native/event-row.ts';

function row(
  fields: Partial<
    Record<'at' | 'session' | 'kind' | 'type' | 'call' | 'method' | 'bytes' | 'detail', number>
  >,
): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(eventRowBytes));
  bytes.setBigUint64(0, BigInt(fields.at ?? 0), true);
  bytes.setUint32(8, fields.session ?? 4096, true);
  bytes.setUint8(12, fields.kind ?? 0);
  bytes.setUint8(13, fields.type ?? 0);
  for (const [place, name] of (['call', 'method', 'bytes', 'detail'] as const).entries())
    bytes.setUint32(16 + 4 * place, fields[name] ?? 0, true);
  return new Uint8Array(bytes.buffer);
}

/** Returns a file as native code writes it. */
const text = (words: string): Uint8Array => {
  const bytes = row({ kind: 11 });
  bytes.set(new TextEncoder().encode(words), 16);
  return bytes;
};

function about(rows: number, given: object = {}): TraceAbout {
  return {
    pid: 7,
    command: 'node server.js',
    atNs: 2000,
    wallMs: 1_700_000_000_000,
    contexts: [
      {
        fabric: 'shm',
        device: 'shm',
        rows,
        sessions: [{ number: 4096, side: 'server', peer: 'host' }],
        methods: [{ id: 9, name: 'a.B/C' }],
      },
    ],
    ...given,
  };
}

const call = [
  row({ kind: 9, type: 2 }),
  row({ at: 1000, kind: 1, type: 1, call: 5 + 3 * 4096, method: 9, bytes: 60, detail: 2 }),
  row({ at: 1500, kind: 2, type: 2, call: 5 + 3 * 4096, method: 5, bytes: 16 }),
  row({ at: 1500, kind: 8, type: 0, call: 5 + 3 * 4096, method: 9, detail: 2 }),
  row({ at: 1600, kind: 10 }),
  text('receive failed: '),
  text('wr_flush_err'),
];
const file = (rows = call, given: object = {}): Uint8Array => traceFile(about(rows.length, given), rows);

describe('the program', () => {
  test.each([
    ['node', 'node'],
    ['/usr/bin/node /srv/main.js --token=secret', '/usr/bin/node /srv/main.js'],
    ['node --max-old-space-size=100 main.js secret', 'node --max-old-space-size=100 main.js'],
    ['', ''],
  ])('of %j is %j', (command, program) => {
    expect(programOf(command)).toBe(program);
  });
});

const seed = 20_261_123;

describe('the contents of a file', () => {
  test('is read as it was written', () => {
    expect(eventsOfTrace(traceIn(file()))).toMatchObject([
      { kind: 'state', state: 'ready' },
      { kind: 'frame-in', frame: 'request', call: '5.3', method: 'a.B/C', bytes: 60, credits: 2 },
      { kind: 'frame-out', frame: 'response', call: '5.3', method: 'a.B/C', status: 'NOT_FOUND' },
      { kind: 'settle', call: '5.3', good: false, tookUs: 0.512 },
      { kind: 'ended', reason: 'receive failed: wr_flush_err' },
    ]);
  });
  test("keeps the order of a session's events, even when their times do not increase", () => {
    const rows = [row({ at: 20, kind: 3, detail: 1 }), row({ at: 10, kind: 3, detail: 2 })];
    expect(eventsOfTrace(traceIn(file(rows))).map(({ requests }) => requests)).toEqual([1, 2]);
  });
  test('names the method of parts of a stream, except parts to a server, which do not contain it', () => {
    const frames = [9, 9 ^ 1, 2, 77].map((method, at) => row({ kind: 1, type: 1, call: at + 4096, method }));
    expect(eventsOfTrace(traceIn(file(frames))).map(({ method }) => method)).toEqual([
      'a.B/C',
      'a.B/C',
      '(part to the server)',
      '0x0000004d',
    ]);
  });
  test('may have kinds of later versions, which are skipped', () => {
    expect(eventsOfTrace(traceIn(file([row({ kind: 200 }), row({ kind: 3 })])))).toMatchObject([
      { kind: 'post' },
    ]);
  });
  test('is printed without terminal commands', () => {
    const evil = file([row({ kind: 10 }), text('\u001b[2J')], {
      command: '\u001b]0;x\u0007',
      reason: '\u001b[31m',
    });
    const trace = traceIn(evil);
    for (const line of textOf(trace.about, eventsOfTrace(trace))) expect(line).not.toMatch(/\p{Cc}/u);
  });
  test('keeps the name of a peer in its line, with the text direction of the line', () => {
    const [context] = about(1).contexts;
    const [session] = context!.sessions;
    const peer = 'x)\nsession 7 (server, verbs)\u2028\u202e';
    const contexts = [{ ...context!, sessions: [{ ...session!, peer }] }];
    const trace = traceIn(file([row({ kind: 3 })], { contexts }));
    const lines = [...textOf(trace.about, eventsOfTrace(trace))];
    expect(lines.filter((line) => line.startsWith('session '))).toEqual([expect.stringContaining('x)')]);
    for (const line of lines) expect(line).not.toMatch(/[\n\u2028\u202e]/);
  });
});

describe('invalid files', () => {
  test('a file that is truncated before its first event is reported', () => {
    const whole = file();
    const rowsAt = whole.length - call.length * eventRowBytes;
    for (let length = 0; length < rowsAt; ++length)
      expect(() => traceIn(whole.subarray(0, length))).toThrow(/^is cut off: /);
  });
  test('a file that is truncated behind that is read up to its end, and can be written again', () => {
    const two = [...about(call.length).contexts, ...about(1).contexts];
    const whole = traceFile(about(0, { contexts: two }), [...call, row({ kind: 3 })]);
    const rowsAt = whole.length - (call.length + 1) * eventRowBytes;
    for (let length = rowsAt; length < whole.length; ++length) {
      const trace = traceIn(whole.subarray(0, length));
      const complete = Math.floor((length - rowsAt) / eventRowBytes);
      expect([trace.about.contexts.map(({ rows }) => rows), trace.missing]).toEqual([
        [Math.min(complete, call.length), 0],
        call.length + 1 - complete,
      ]);
      expect(() => eventsOfTrace(trace)).not.toThrow();
      expect(traceIn(traceFile(trace.about, trace.rows))).toEqual({ ...trace, missing: 0 });
    }
    expect(traceIn(whole).missing).toBe(0);
  });
  test.each<[string, object]>([
    ['a missing pid', { pid: undefined }],
    ['an invalid pid', { pid: -1 }],
    ['a time that is too large', { wallMs: 1e300 }],
    ['a reason that is not a text', { reason: {} }],
    ['a text instead of contexts', { contexts: 'none' }],
    ['an invalid context', { contexts: [null] }],
    ['a negative number of rows', { contexts: [{ ...about(-1).contexts[0] }] }],
    ['a fractional number of rows', { contexts: [{ ...about(0.5).contexts[0] }] }],
    ['invalid sessions', { contexts: [{ ...about(7).contexts[0], sessions: [{}] }] }],
    ['invalid methods', { contexts: [{ ...about(7).contexts[0], methods: [7] }] }],
    ['too many contexts', { contexts: Array.from({ length: 2000 }, () => about(0).contexts[0]) }],
  ])('a file with %s is reported', (_, given) => {
    expect(() => traceIn(file(call, given))).toThrow(
      /^is not a trace of rdma-rpc: its description is not that of a trace/,
    );
  });
  test('a file that says it has more rows than exist is read like one that is cut off', () => {
    const trace = traceIn(file(call, { contexts: about(2 ** 40).contexts }));
    expect([trace.about.contexts[0]!.rows, trace.missing]).toEqual([call.length, 2 ** 40 - call.length]);
  });
  test('another version is named', () => {
    const other = file();
    new DataView(other.buffer, other.byteOffset).setUint32(8, 2, true);
    expect(() => traceIn(other)).toThrow('is of version 2 of traces; this rdma-rpc reads version 1');
  });
  test('any bytes give events or an error of one sentence', () => {
    const shown = (bytes: Uint8Array): void => {
      let trace: ReturnType<typeof traceIn>;
      try {
        trace = traceIn(bytes);
      } catch (error) {
        expect((error as Error).message).toMatch(/^is /);
        return;
      }
      const events = eventsOfTrace(trace);
      expect([...textOf(trace.about, events)].length).toBeGreaterThanOrEqual(events.length);
      JSON.stringify(chromeTrace(trace.about, events));
    };
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 * eventRowBytes }), (bytes) => {
        const rows = Math.floor(bytes.length / eventRowBytes);
        shown(traceFile(about(rows), [bytes]));
        shown(bytes);
      }),
      { seed },
    );
    const whole = file();
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), (at, value) => {
        const changed = Uint8Array.from(whole);
        changed[at] = value;
        shown(changed);
      }),
      { seed },
    );
  });
});

describe('a ring that is read while it is written', () => {
  const rows = 8;
  /** Returns the state of the ring after `count` rows have been written. */
  const ring = (count: number): Uint8Array => {
    const bytes = new Uint8Array(rows * eventRowBytes);
    for (let at = 0; at < count; ++at) bytes.set(row({ kind: 4, detail: at }), (at % rows) * eventRowBytes);
    return bytes;
  };
  const details = (bytes: Uint8Array): number[] => {
    const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return Array.from({ length: bytes.length / eventRowBytes }, (_, at) =>
      words.getUint32(at * eventRowBytes + 28, true),
    );
  };
  test.each([
    [0, 0, []],
    [3, 3, [0, 1, 2]],
    [7, 7, [0, 1, 2, 3, 4, 5, 6]],
    // The ring is full, so the writer may be overwriting the oldest row while the ring is read.
    [8, 8, [1, 2, 3, 4, 5, 6, 7]],
    [21, 21, [14, 15, 16, 17, 18, 19, 20]],
    [8, 10, [3, 4, 5, 6, 7]],
    [8, 15, []],
    [8, 1000, []],
    [3, 5, [0, 1, 2]],
    // Such rows never occur in the ring.
    [9, 3, []],
    [2 ** 60, 2 ** 60, []],
  ])(
    'gives valid rows when it had %i rows at the start of the reading and %i at its end: %j',
    (before, after, expected) => {
      expect(details(rowsOfRing(ring(Math.min(before, 100)), before, after))).toEqual(expected);
    },
  );
});
