/**
 * Tests the table of runtime/client/stream/ending.ts, row by row. A stream that is brought into each state,
 * with each kind of frame still on its way, acts as the table says.
 */
import { describe, expect, test, vi } from 'vitest';
import { deadlines } from '../../runtime/boundary/time/deadlines.ts';
import { clientMethod } from '../../runtime/client/call/client-method.ts';
import { ClientStream } from '../../runtime/client/stream/client-stream.ts';
import type { ClientStreams } from '../../runtime/client/stream/client-streams.ts';
import {
  type NextStep,
  nextStep,
  type Outstanding,
  type StreamState,
} from '../../runtime/client/stream/ending.ts';
import { Status } from '../../runtime/core/errors/status.ts';
import { partLingerMs } from '../../runtime/limits.ts';
import { Ev, Reason } from '../../runtime/native/native.ts';
import { StreamsDefinition } from './gen/stream.rdma.ts';

const outstandings: readonly Outstanding[] = ['its OPEN', 'memory', 'parts', 'nothing'];

/** The next step, in the order of `outstandings`; undefined for combinations that do not occur. */
const table: Readonly<Record<string, readonly (NextStep | undefined)[]>> = {
  open: ['wait', 'wait', 'wait', 'wait'],
  settled: [undefined, 'wait', 'wait', 'end'],
  'given up': ['wait', 'wait', 'end', 'end'],
  again: [undefined, 'wait', 'wait', 'repeat'],
  over: [undefined, undefined, 'linger', 'leave'],
};

/** A stream that has been opened on a session which does nothing by itself. */
class Bed {
  readonly events = new Int32Array(Ev.words);
  readonly started = vi.fn((stream: ClientStream) => void stream.open(this.streams));
  readonly left = vi.fn();
  readonly cancelled = vi.fn((_stream: ClientStream, _reason: number, _all: boolean) => undefined);
  readonly streams = {
    max: 4,
    rejected: false,
    target: { session: 1, eagerBytes: 8192, messageMaxBytes: 8192 },
    context: { native: { events: this.events } },
    incoming: { whole: { discard: () => undefined, responseMetadata: () => undefined } },
    nextNumber: () => 1,
    fits: () => true,
    open: () => 0,
    sendPart: () => -100,
    onAnswer: () => undefined,
    onRejected: () => undefined,
    leave: this.left,
    cancel: this.cancelled,
  } as unknown as ClientStreams;
  readonly stream = new ClientStream(
    { startStream: this.started, forgetStream: () => undefined },
    clientMethod(StreamsDefinition.methods.count, -1),
    { count: 1 },
    -1,
    undefined,
    undefined,
  );
  readonly told = vi.spyOn(this.stream.reader, 'close');

  constructor() {
    this.stream.reader.next().catch(() => undefined);
  }

  /** Sets which of its parts are on their way besides its OPEN. */
  set parts(outstanding: Outstanding) {
    this.stream.pushes = outstanding === 'memory' ? 1 : 0;
    this.stream.pushedBytes = outstanding === 'memory' ? 100 : 0;
    this.stream.pulls = outstanding === 'parts' ? 1 : 0;
  }
  /** Answers the OPEN, as the server. */
  settle(status: number, processed: number): void {
    this.events[Ev.status] = status;
    this.events[Ev.processed] = processed;
    this.stream.onOpenSettled(0);
  }
  /** Settles the push of a part without content. */
  poke(): void {
    this.events[Ev.status] = Status.OK;
    this.stream.onPushSettled(0);
  }
  get did(): NextStep | 'end, and leave' {
    deadlines.run(deadlines.now + partLingerMs + 10);
    const lingered = this.cancelled.mock.calls.some(([, , all]) => all);
    const told = this.told.mock.calls.length > 0;
    if (this.started.mock.calls.length > 1) return 'repeat';
    if (told && this.left.mock.calls.length > 0) return 'end, and leave';
    if (lingered) return 'linger';
    return told ? 'end' : 'wait';
  }
}

/** Brings a stream into that state, with the given parts on their way. */
function into(state: string, outstanding: Outstanding): Bed {
  const bed = new Bed();
  bed.parts = 'memory';
  if (state === 'settled') bed.settle(Status.OK, 2);
  if (state === 'again') bed.settle(Status.UNAVAILABLE, 0);
  if (state === 'given up' || state === 'over') {
    bed.stream.giveUp(Reason.cancelled, undefined);
    if (state === 'over') bed.parts = 'parts';
    if (outstanding !== 'its OPEN') bed.stream.onOpenFailed(Reason.cancelled, 1, '');
  }
  if (state === 'open' && outstanding !== 'its OPEN') bed.parts = 'memory';
  bed.parts = outstanding;
  bed.poke();
  return bed;
}

describe.each(Object.entries(table))('a stream that is %s', (state, steps) => {
  const rows = steps.flatMap((step, i) => (step === undefined ? [] : [[outstandings[i]!, step] as const]));
  test.each(rows)('with %s on its way: %s', (outstanding, step) => {
    expect(nextStep(state as StreamState, outstanding)).toBe(step);
    // The stream has ended, so it continues with that row at once.
    const then = step === 'end' ? (outstanding === 'nothing' ? 'end, and leave' : 'linger') : step;
    expect(into(state, outstanding).did).toBe(then === 'leave' ? 'end, and leave' : then);
  });
});

test.each(['new', 'waiting', 'opening', 'left'] as const)(
  'a stream that is %s has nothing on its way',
  (state) => {
    for (const outstanding of outstandings) expect(nextStep(state, outstanding)).toBe('wait');
  },
);

test('a stream that is cancelled during a retry is not retried again', () => {
  const bed = into('again', 'parts');
  bed.stream.giveUp(Reason.cancelled, undefined);
  bed.parts = 'nothing';
  bed.poke();
  expect(bed.did).toBe('end, and leave');
});
