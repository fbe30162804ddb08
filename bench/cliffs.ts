/**
 * The cliffs of a curve: steps between neighbouring points at which a call costs more than one and a half
 * times what it should.
 */

interface Point {
  readonly x: number;
  readonly callsPerSecond: number;
}

/** A point of one peer. */
export interface Measured extends Point {
  /** True if other processes used the machine in every round. */
  readonly disturbed: boolean;
}

export interface Step<P extends Point> {
  readonly from: P;
  readonly to: P;
  /** The time of a call beyond the step, as a multiple of the expected time. */
  readonly times: number;
}

export type Cliff = Step<Measured>;

/** A step with a higher ratio is a cliff. */
export const cliffMin = 1.5;

/**
 * Returns the steps of one line, whose points are in order. With `bytes`, a step may add the time that the
 * additional bytes take at the line's best byte rate. Without `bytes`, each additional call or connection
 * should cost at most as much as the earlier calls or connections.
 */
export function stepsOf<P extends Point>(line: readonly P[], bytes: boolean): Step<P>[] {
  const seconds = ({ callsPerSecond }: Point): number => 1 / callsPerSecond;
  const perByte = bytes ? Math.min(...line.map((each) => seconds(each) / each.x)) : 0;
  return line.slice(1).map((to, index) => {
    const from = line[index]!;
    return { from, to, times: seconds(to) / (seconds(from) + perByte * (to.x - from.x)) };
  });
}

/** Returns the steps that are cliffs. */
export function cliffsOf(line: readonly Measured[], bytes: boolean): Cliff[] {
  return stepsOf(line, bytes).filter(({ times }) => times > cliffMin);
}
