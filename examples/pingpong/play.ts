/**
 * Plays a ping-pong with one end or both ends in this process, and returns the result.
 */
import { End } from './end.ts';
import { dial, listen, type Meeting, meetHere } from './meeting.ts';
import type { Kind, Options } from './options.ts';

export interface Outcome {
  /**
   * Number of bytes that went there and back, on all queue pairs, and number of bytes that this process has
   * checked.
   */
  readonly bytes: number;
  readonly bytesChecked: number;
  readonly rounds: number;
  readonly seconds: number;
}

/**
 * Time in milliseconds without a message after which the message counts as lost. uc, ud and multicast may
 * lose messages. A reliable queue pair sends its packets again, which takes seconds on a busy machine, and
 * reports a loss itself.
 */
const silenceMsOf = (kind: Kind): number => (kind === 'rc' || kind === 'srq' ? 60_000 : 2000);
/** Number of unsuccessful polls before the event loop may run. */
const pollsPerTurn = 1000;

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Makes the connections, and resolves when the peer is also ready. A message that is sent earlier would be
 * lost.
 */
async function meet(end: End, meeting: Meeting): Promise<void> {
  await end.connect(await meeting.swap(end.card));
  await meeting.swap('ready');
}

async function finish(ends: readonly End[], events: boolean, silenceMs: number): Promise<void> {
  let quietSince = Date.now();
  /** Whether a message has arrived since the last look at the clock, which takes longer than a poll. */
  let lately = false;
  let polls = 0;
  const late = (): void => {
    if (lately) quietSince = Date.now();
    lately = false;
    if (Date.now() - quietSince > silenceMs)
      throw new Error(
        `no message for ${silenceMs / 1000} s: the peer has ended, or a message of uc, ud or multicast was lost, which is not sent again`,
      );
  };
  let over = false;
  while (!over) {
    let came = false;
    for (const end of ends) came = end.advance() || came;
    if (came) {
      over = ends.every((end) => end.over);
      lately = true;
      polls = 0;
    } else if (events) {
      await Promise.race([
        ...ends.map((end) => end.ready()),
        new Promise((resolve) => setTimeout(resolve, 100)),
      ]);
      late();
    } else if (++polls % pollsPerTurn === 0) {
      late();
      await nextTurn();
    }
  }
}

/**
 * Waits until the peer has finished, too. In the meantime this end continues to poll, because the peer may
 * still need an acknowledgement, and on tcp this process sends it.
 */
async function part(ends: readonly End[], meetings: readonly Meeting[]): Promise<void> {
  let waits = true;
  const parted = Promise.all(meetings.map((meeting) => meeting.swap('done'))).finally(() => {
    waits = false;
  });
  while (waits) {
    for (const end of ends) end.drive();
    await nextTurn();
  }
  await parted;
}

/**
 * Throws an error about what the device lacks, or about what went wrong. `say` gets the port at which this
 * side listens.
 */
export async function play(
  options: Options,
  say: (text: string) => void,
  silenceMs = silenceMsOf(options.kind),
): Promise<Outcome> {
  const { both, host, port, size, iters, queuePairs } = options;
  const ends: End[] = [];
  const meetings: Meeting[] = [];
  try {
    if (both) {
      ends.push(new End(options, true), new End(options, false));
      meetings.push(...meetHere());
    } else {
      ends.push(new End(options, host !== undefined));
      meetings.push(
        host === undefined
          ? await listen(port, (bound) => say(`listening on port ${bound}`))
          : await dial(host, port),
      );
    }
    await Promise.all(ends.map((end, i) => meet(end, meetings[i]!)));
    const begun = process.hrtime.bigint();
    for (const end of ends) end.start();
    await finish(ends, options.events, silenceMs);
    const seconds = Number(process.hrtime.bigint() - begun) / 1e9;
    await part(ends, meetings);
    const rounds = iters * queuePairs;
    const bytesChecked = ends.reduce((sum, end) => sum + end.bytesChecked, 0);
    return { bytes: 2 * rounds * size, bytesChecked, rounds, seconds };
  } finally {
    for (const meeting of meetings) meeting.close();
    for (const end of ends) end[Symbol.dispose]();
  }
}
