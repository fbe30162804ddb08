/**
 * Nanoseconds per message for our codec and for the two codecs that TypeScript users use. Each codec has its
 * own process (contender.ts), so that it does not collect the garbage or use the inline caches of another
 * codec. The processes take turns of some milliseconds. main.ts calls these functions.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { applies, codecs, directions } from './candidates.ts';
import type { Cost, Slice } from './contender.ts';
import { staticModule } from './peers.ts';
import { type Case, cases } from './values.ts';

export interface Speed {
  readonly case: Case;
  readonly encodedBytes: number;
  readonly peer: string;
  /** Nanoseconds per message, with one figure per round. */
  readonly encode: number[];
  readonly decode: number[];
}

export interface Plan {
  /**
   * Number of processes. The optimiser generates different code from the same source in each process, so the
   * rounds are spread over several processes.
   */
  readonly processes: number;
  /** Number of rounds in each process. */
  readonly rounds: number;
  /**
   * Number of turns of each codec in a round. With several turns, a slowdown of some milliseconds affects all
   * codecs.
   */
  readonly slices: number;
  readonly sliceMs: number;
}

async function start(codec: string): Promise<ChildProcess> {
  const child = fork(fileURLToPath(new URL('./contender.js', import.meta.url)), [codec]);
  child.on('exit', (code) => {
    if (code !== 0) throw new Error(`the process of ${codec} ended: ${code}`);
  });
  await once(child, 'message');
  return child;
}

async function costOf(child: ChildProcess, slice: Slice): Promise<Cost> {
  child.send(slice);
  const [cost] = (await once(child, 'message')) as [Cost];
  return cost;
}

/**
 * Returns nanoseconds per message of each codec. The costs of the slices are added up, so that a garbage
 * collection counts for the codec that produced the garbage.
 */
async function roundOf(children: readonly ChildProcess[], slice: Slice, slices: number): Promise<number[]> {
  const totals = children.map(() => ({ calls: 0, microseconds: 0 }));
  for (let turn = 0; turn < slices; turn++) {
    for (const [i, child] of children.entries()) {
      const { calls, microseconds } = await costOf(child, { ...slice, first: slice.first && turn === 0 });
      const total = totals[i]!;
      total.calls += calls;
      total.microseconds += microseconds;
    }
  }
  return totals.map(({ calls, microseconds }) => (microseconds * 1000) / calls);
}

export async function measureSpeed(plan: Plan, only: string): Promise<Speed[]> {
  const chosen = cases.filter(({ name }) => name.startsWith(only));
  const speeds = chosen.map((each) =>
    codecs
      .filter((codec) => applies(codec, each))
      .map((peer): Speed => {
        const encodedBytes = each.type.encode(each.message).length;
        return { case: each, encodedBytes, peer, encode: [], decode: [] };
      }),
  );
  await staticModule();
  for (let process = 0; process < plan.processes; process++) {
    const children: ChildProcess[] = [];
    for (const codec of codecs) children.push(await start(codec));
    for (const [row, each] of chosen.entries()) {
      const taking = children.filter((_, i) => applies(codecs[i]!, each));
      for (const direction of directions) {
        // Round 0 is the warm-up.
        for (let round = 0; round <= plan.rounds; round++) {
          const slice = {
            message: cases.indexOf(each),
            direction,
            milliseconds: plan.sliceMs,
            first: round === 0,
          };
          const figures = await roundOf(taking, slice, plan.slices);
          if (round === 0) continue;
          speeds[row]?.forEach((speed, i) => {
            speed[direction].push(figures[i]!);
          });
        }
      }
    }
    for (const child of children) child.disconnect();
  }
  return speeds.flat();
}
