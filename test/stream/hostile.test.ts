/**
 * Tests a server against clients that violate the rules of streams. The stream ends with INTERNAL, every
 * request is answered, and the session continues.
 */
import { Status } from 'rdma-rpc';
import { beforeEach, describe, expect, test } from 'vitest';
import { EvKind } from '../../runtime/native/native.ts';
import { PartFlag, PartKind } from '../../runtime/stream/part-header.ts';
import type { FakeEvent } from '../runtime/fake-events.ts';
import { last, open, part, pull, push, pushOf, StreamBed } from './stream-bed.ts';

let bed: StreamBed;
beforeEach(() => {
  bed = new StreamBed();
});

const item = Uint8Array.of(8, 1);
const packed = { count: 2, flags: PartFlag.packed };

/** Events that end the stream whose OPEN has handle 10, and a word of the error. */
const mistakes: [string, FakeEvent[], string][] = [
  ['a push with a sequence that came before', [open(10, 'hold'), push(11, 0), push(12, 0)], 'came twice'],
  ['a push from too far ahead', [open(10, 'hold'), push(11, 8)], 'too early'],
  ['a message behind the last', [open(10, 'sum'), push(11, 0, last), pushOf(12, 1, {})], 'after the last'],
  [
    'a pull with a sequence that came before',
    [open(10, 'hold'), pull(11, 0), pull(12, 0)],
    'asked for twice',
  ],
  ['a pull from too far ahead', [open(10, 'hold'), pull(11, 8)], 'too early'],
  [
    'a message for a method that has its one',
    [
      part(
        10,
        PartKind.open,
        { method: 'behave', count: 1, flags: last },
        Uint8Array.of(26, 4, ...Buffer.from('hang')),
      ),
      pushOf(11, 0, {}),
    ],
    'takes one only',
  ],
  ['no message for a method that takes one', [open(10, 'behave'), push(11, 0, last)], 'no message'],
  [
    'packed lengths that do not add up',
    [open(10, 'hold'), part(11, PartKind.push, packed, Uint8Array.of(2, 0, ...item, 9))],
    'cut off',
  ],
  [
    'packed messages that are none',
    [open(10, 'hold'), part(11, PartKind.push, packed, Uint8Array.of(1, 0, 255, 0, 0))],
    'cannot be decoded',
  ],
  ['a second open with its number', [open(10, 'hold'), open(11, 'hold')], 'same number'],
];

describe('the stream ends, and the session continues', () => {
  test.each(mistakes)('%s', async (_, events, word) => {
    bed.native.deliver(...events);
    const answers = await bed.answers();
    const handles = events.map(({ call }) => call!);
    expect(answers.map(({ handle }) => handle).sort()).toEqual(handles);
    const end = answers.find(({ handle }) => handle === 10)!;
    expect(end.status).toBe(Status.INTERNAL);
    expect(end.text).toContain(word);
    expect(bed.streams.size).toBe(0);
    expect(bed.load.running).toBe(0);
    expect(bed.native.closes).toEqual([]);
    // Another stream with the same number works.
    bed.native.deliver(open(20, 'sum'), pull(21, 0), push(22, 0, last));
    expect((await bed.answers()).map(({ handle, status }) => [handle, status])).toEqual([
      [22, 0],
      [21, 0],
      [20, 0],
    ]);
  });
});

test('a stream beyond the agreed number is refused with the name of the option; when one ends there is room', async () => {
  bed.native.deliver(...[1, 2, 3, 4].map((number) => open(10 + number, 'hold', number)));
  expect(await bed.answers()).toEqual([]);
  bed.native.deliver(open(15, 'hold', 5));
  expect(await bed.answers()).toMatchObject([
    {
      handle: 15,
      status: Status.RESOURCE_EXHAUSTED,
      notRun: true,
      text: 'test.stream.Streams/Hold: 4 streams are open already (option streamsMax of the server)',
    },
  ]);
  bed.native.deliver({ kind: EvKind.cancelled, call: 11, status: Status.CANCELLED });
  bed.native.deliver(open(16, 'hold', 6));
  expect((await bed.answers()).map(({ handle }) => handle)).not.toContain(16);
  expect(bed.streams.size).toBe(4);
});

describe('an invalid OPEN', () => {
  test.each([
    ['of no method', { ...open(10, 'hold'), method: 12345 }, Status.UNIMPLEMENTED, 'method id 12345'],
    ['of a method without a handler', open(10, 'missing'), Status.UNIMPLEMENTED, 'is not implemented'],
    ['of a unary method', open(10, 'unary'), Status.UNIMPLEMENTED, 'is no streaming method'],
    [
      'with a message where a stream begins',
      part(10, PartKind.open, { method: 'hold', count: 1, flags: last }, item),
      Status.INTERNAL,
      'a message where',
    ],
    [
      'with a message and more to come',
      part(10, PartKind.open, { method: 'behave', count: 1 }, item),
      Status.INTERNAL,
      'a message where',
    ],
    [
      'with a message that is none',
      part(10, PartKind.open, { method: 'behave', count: 1, flags: last }, Uint8Array.of(255)),
      Status.INTERNAL,
      'cannot be decoded',
    ],
    [
      'without a header',
      { ...open(10, 'hold'), metadata: Uint8Array.of(1, 2, 3) },
      Status.INTERNAL,
      'without a header',
    ],
    [
      'with malformed metadata',
      { ...open(10, 'hold'), metadata: Uint8Array.of(...open(10, 'hold').metadata!, 0) },
      Status.INTERNAL,
      'malformed metadata',
    ],
  ] as const)('%s', async (_, event, status, text) => {
    bed.native.deliver(event);
    const answers = await bed.answers();
    expect(answers).toMatchObject([{ handle: 10, status, notRun: true }]);
    expect(answers[0]!.text).toContain(text);
    expect(bed.streams.size).toBe(0);
  });

  test('a unary request for a streaming method is refused', async () => {
    bed.native.deliver({ ...open(10, 'hold'), part: 0, metadata: new Uint8Array(0) });
    expect(await bed.answers()).toMatchObject([{ handle: 10, status: Status.UNIMPLEMENTED, notRun: true }]);
  });
});

test('parts of an unknown stream are answered at once', async () => {
  bed.native.deliver(pushOf(1, 0, {}), pull(2, 7, 99), push(3, 1, last));
  expect(await bed.answers()).toMatchObject([
    { handle: 1, status: 0, part: undefined },
    { handle: 2, status: 0, part: { sequence: 7, count: 0, last: true } },
    { handle: 3, status: 0, part: undefined },
  ]);
});

test('large messages of an unknown stream are released', async () => {
  const block = bed.native.allocBlock(100);
  bed.native.deliver({ ...pushOf(1, 0, {}), message: new Uint8Array(50), block });
  expect(await bed.answers()).toHaveLength(1);
  expect(bed.native.blocks.get(block)!.references).toBe(1);
});

test('without send slots answers wait, in order, and none is lost', async () => {
  bed = new StreamBed({ slots: 2 });
  bed.native.freeAtFlush = false;
  bed.native.deliver(
    open(10, 'sum'),
    pull(11, 0),
    pull(12, 1),
    ...[0, 1, 2, 3].map((i) => pushOf(20 + i, i, { number: i })),
  );
  bed.native.deliver(push(30, 4, last));
  const seen: number[] = [];
  for (let i = 0; i < 10; ++i) {
    seen.push(...(await bed.answers()).map(({ handle }) => handle));
    bed.native.releaseSlots();
    bed.native.deliver({ kind: EvKind.slotsFree });
  }
  expect(seen.slice().sort()).toEqual([10, 11, 12, 20, 21, 22, 23, 30]);
  expect(seen.indexOf(11)).toBeLessThan(seen.indexOf(10));
});

describe('a stream that is cancelled', () => {
  const cancelled = { kind: EvKind.cancelled, call: 10, status: Status.CANCELLED };

  test('answers requests, and drops messages', async () => {
    bed.native.deliver(open(10, 'take'), pull(11, 0), pull(12, 1));
    bed.native.deliver(pushOf(13, 0, { text: 'all' }), pushOf(14, 2, {}));
    expect((await bed.answers()).map(({ handle }) => handle)).toEqual([13]);
    bed.native.deliver(cancelled);
    const answers = await bed.answers();
    expect(answers.map(({ handle, status }) => [handle, status])).toEqual([
      [14, 0],
      [11, 0],
      [12, 0],
    ]);
    expect(bed.log.caught).toEqual([Status.CANCELLED]);
    expect(bed.log.finished).toEqual(['aborted']);
    expect(bed.streams.size).toBe(0);
  });

  test('before its handler has begun', async () => {
    bed.native.deliver(open(10, 'behave'));
    bed.native.deliver(cancelled);
    expect(await bed.answers()).toEqual([]);
    expect([bed.streams.size, bed.load.running, bed.log.produced]).toEqual([0, 0, 0]);
  });

  test('with the session', async () => {
    bed.native.deliver(open(10, 'take'), pull(11, 0), pushOf(12, 0, { text: 'all' }));
    await bed.answers();
    bed.native.deliver({ kind: EvKind.sessionDown });
    expect(await bed.answers()).toEqual([]);
    expect(bed.log.finished).toEqual(['aborted']);
    expect(bed.streams.size).toBe(0);
  });
});
