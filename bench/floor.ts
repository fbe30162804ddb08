/**
 * Measures the share of the bare ring's rate that a call can reach at all. It runs the JS code of both sides,
 * with nothing between them, on one thread. It measures two kinds of calls. Ours consists of a promise,
 * generated code that writes and reads a message, values copied into the application's memory, an async
 * handler and the code that awaits the handler. The limit's call is the same, with the limit's own slots.
 * Neither has a session, deadline, event, credit or transport. The program divides the rate of our calls by
 * the rate of the limit's calls, and prints a table. A real call cannot reach a larger share of the ring's
 * rate, because its session, deadline, event, credit and transport also cost time. Run it by hand, after
 * setup:
 *
 *   node dist/bench/floor.js [--rounds 9]
 */
import { parseArgs } from 'node:util';
import { copyValue } from '../runtime/boundary/incoming/value-memory.ts';
import { Source } from '../runtime/codec/memory/source.ts';
import { Writer } from '../runtime/codec/memory/writer.ts';
import { Msg as MsgType } from './gen/bench.rdma.ts';
import { endsRight, fillPayload, handlers } from './handlers.ts';
import { inlineMax, readMsg, slotBytes, writeMsg } from './limit/slot.ts';
import type { Msg } from './peer.ts';

/** Returns the number of calls in flight, as in the rows of the benchmark. */
const callsOf = (bytes: number): number => (bytes > 1024 ? 8 : 256);
const stride = 8192 + 64;
const windowMs = 150;

/** The messages of one side. They are written in place, and read before the place is reused. */
interface Messages {
  /** Returns the memory in which a payload to be written is created. */
  buffer(place: number, bytes: number): Uint8Array;
  write(place: number, message: Msg): void;
  read(place: number): Msg;
}

/** Handles messages as a session does: in send slots, and from receives into chunks. */
function generated(inFlight: number): Messages {
  const memory = new Uint8Array(inFlight * stride);
  const writer = new Writer();
  const source = new Source();
  const ends = new Int32Array(inFlight);
  source.reset(memory);
  source.copyOut = copyValue;
  return {
    buffer: (_, bytes) => new Uint8Array(bytes),
    write(place, message) {
      writer.reset(memory);
      ends[place] = MsgType.encodeTo(message, writer, place * stride, (place + 1) * stride);
    },
    read: (place) => MsgType.decodeFrom(source, place * stride, ends[place]!) as Msg,
  };
}

/**
 * Handles messages as the limit does: they lie in the slot, or in a buffer of the pool beside the slots, from
 * which the reader copies them.
 */
function bare(inFlight: number, payloadBytes: number, copies: boolean): Messages {
  const memory = new Uint8Array(inFlight * slotBytes);
  if (payloadBytes <= inlineMax) {
    return {
      buffer: (_, bytes) => new Uint8Array(bytes),
      write: (place, message) => writeMsg(memory, place * slotBytes, message),
      read: (place) => readMsg(memory, place * slotBytes),
    };
  }
  const pool = new ArrayBuffer(2 * inFlight * stride);
  const ids = new Float64Array(inFlight);
  const at = (part: number, place: number): Uint8Array =>
    new Uint8Array(pool, (part * inFlight + place) * stride, payloadBytes);
  return {
    buffer: (place) => at(0, place),
    write(place, { payload, id }) {
      ids[place] = id;
      // The request has been created in that buffer.
      if (!copies) at(0, place).set(payload);
    },
    read(place) {
      const payload = at(copies ? 1 : 0, place);
      if (copies) payload.set(at(0, place));
      return { payload, id: ids[place]! };
    },
  };
}

let captured: (message: Msg) => void = () => {};
const capture = (resolve: (message: Msg) => void): void => {
  captured = resolve;
};

/** Returns the CPU time of both sides for a call, in microseconds. */
async function measure(requests: Messages, answers: Messages, payloadBytes: number): Promise<number> {
  const inFlight = callsOf(payloadBytes);
  const waiting: ((message: Msg) => void)[] = new Array(inFlight).fill(capture);
  let asked: number[] = [];
  let answered: number[] = [];
  let done = false;
  let calls = 0;
  const echo = (message: Msg, place: number): Promise<Msg> => {
    requests.write(place, message);
    asked.push(place);
    const promise = new Promise<Msg>(capture);
    waiting[place] = captured;
    return promise;
  };
  const work = async (place: number): Promise<void> => {
    const payload = requests.buffer(place, payloadBytes);
    fillPayload(payload);
    for (let id = place; !done; id += inFlight) {
      const answer = await echo({ payload, id }, place);
      if (answer.id !== id || !endsRight(answer.payload, payloadBytes))
        throw new Error(`not the answer to ${id}`);
      calls++;
    }
  };
  /** Reads the messages that have arrived for a side, and then runs the resulting microtasks. */
  const turn = (take: () => void): Promise<void> =>
    new Promise((after) =>
      setImmediate(() => {
        take();
        after();
      }),
    );
  const serve = (): void => {
    const batch = asked;
    asked = [];
    for (const place of batch) {
      handlers.echo(requests.read(place)).then((message) => {
        answers.write(place, message);
        answered.push(place);
      });
    }
  };
  const settle = (): void => {
    const batch = answered;
    answered = [];
    for (const place of batch) waiting[place]!(answers.read(place));
  };
  const workers = Array.from({ length: inFlight }, (_, place) => work(place));
  const from = performance.now();
  const cpu = process.cpuUsage();
  while (performance.now() - from < windowMs) {
    await turn(serve);
    await turn(settle);
  }
  const { user, system } = process.cpuUsage(cpu);
  const microseconds = (user + system) / calls;
  done = true;
  await turn(serve);
  await turn(settle);
  await Promise.all(workers);
  return microseconds;
}

/** Returns the minimum, which other processes have disturbed least. */
function least(values: readonly number[]): number {
  return Math.min(...values);
}

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '9' } } });
console.log(
  '| payload | generated code and chunks, us of CPU a call | slots of the limit, us | of the limit at most |',
);
console.log(
  '| ------- | -----------------------------------: | ---------------------: | -------------------: |',
);
for (const bytes of [32, 200, 1024, 4096, 8000]) {
  const ours: number[] = [];
  const limits: number[] = [];
  const inFlight = callsOf(bytes);
  const [requests, answers] = [generated(inFlight), generated(inFlight)];
  const [bareRequests, bareAnswers] = [bare(inFlight, bytes, true), bare(inFlight, bytes, false)];
  for (let round = 0; round < Number(values.rounds); round++) {
    ours.push(await measure(requests, answers, bytes));
    limits.push(await measure(bareRequests, bareAnswers, bytes));
  }
  const [mine, limit] = [least(ours), least(limits)];
  console.log(
    `| ${bytes} B | ${mine.toFixed(2)} | ${limit.toFixed(2)} | ${((100 * limit) / mine).toFixed(0)} % |`,
  );
}
