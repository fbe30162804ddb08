/**
 * A process with one codec: runs slices of work when it is told to, and answers with what they cost. Started
 * by speed.ts.
 */
import { type Candidate, type CodecName, candidateMaker, type Direction } from './candidates.ts';
import { cases } from './values.ts';

/** What to run: the number of the message in `cases`. */
export interface Slice {
  readonly message: number;
  readonly direction: Direction;
  readonly milliseconds: number;
  /** Whether another message or direction was before it. */
  readonly first: boolean;
}

export interface Cost {
  readonly calls: number;
  readonly microseconds: number;
}

/** Kept where the optimiser cannot see that nobody reads it. */
const kept: { value: unknown } = { value: undefined };

/** CPU time of this process when the last slice was over, as `process.cpuUsage` gives it. */
let spent = process.cpuUsage();

/**
 * CPU time of this process, which on a shared machine moves far less than the clock. It counts from the end
 * of the slice before, unless this is the first of a row: other threads go on collecting garbage while the
 * other codecs have their turns.
 */
function costOf(run: () => unknown, { milliseconds, first }: Slice): Cost {
  const start = process.cpuUsage();
  if (first) spent = start;
  let calls = 0;
  for (;;) {
    for (let i = 0; i < 100; i++) kept.value = run();
    calls += 100;
    const now = process.cpuUsage();
    if (now.user + now.system - start.user - start.system < milliseconds * 1000) continue;
    const microseconds = now.user + now.system - spent.user - spent.system;
    spent = now;
    return { calls, microseconds };
  }
}

const make = await candidateMaker(process.argv[2] as CodecName);
const made = cases.map((): Candidate | undefined => undefined);
process.on('message', (slice: Slice) => {
  const of = cases[slice.message];
  if (of === undefined) throw new Error(`no message ${slice.message}`);
  const candidate = made[slice.message] ?? make(of);
  made[slice.message] = candidate;
  process.send?.(costOf(candidate[slice.direction], slice));
});
process.send?.('ready');
