/**
 * A process with one codec. It runs slices of work on request, and answers with their cost. speed.ts starts
 * this program.
 */
import { type Candidate, type CodecName, candidateMaker, type Direction } from './candidates.ts';
import { cases } from './values.ts';

/** The slice to run. `message` is the index of the message in `cases`. */
export interface Slice {
  readonly message: number;
  readonly direction: Direction;
  readonly milliseconds: number;
  /** Whether the previous slice had another message or direction. */
  readonly first: boolean;
}

export interface Cost {
  readonly calls: number;
  readonly microseconds: number;
}

/** The value is kept where the optimiser cannot tell that it is never read. */
const kept: { value: unknown } = { value: undefined };

/** CPU time of this process at the end of the last slice, as returned by `process.cpuUsage`. */
let spent = process.cpuUsage();

/**
 * Returns CPU time of this process, which on a shared machine varies far less than the clock. It is counted
 * from the end of the previous slice, unless this slice is the first of a row. Other threads continue to
 * collect garbage while the other codecs run, and this time must be counted.
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
