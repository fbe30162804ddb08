/**
 * Where a curve breaks off: a step between neighbouring points at which a call costs more than one and a half
 * times what it should.
 */

/** Of one peer. */
export interface Measured {
  readonly x: number;
  readonly callsPerSecond: number;
  /** Others used the machine in every round. */
  readonly disturbed: boolean;
}

export interface Cliff {
  readonly from: Measured;
  readonly to: Measured;
  /** The time of a call beyond the step, as a multiple of what it should be. */
  readonly times: number;
}

/** A longer step is a cliff. */
export const cliffMin = 1.5;

/**
 * The cliffs of one line, whose points are in order. With `bytes` a call may take longer by what the further
 * bytes take at the line's best rate of bytes; elsewhere each further call or connection is to cost no more
 * than the ones before.
 */
export function cliffsOf(line: readonly Measured[], bytes: boolean): Cliff[] {
  const seconds = ({ callsPerSecond }: Measured): number => 1 / callsPerSecond;
  const perByte = bytes ? Math.min(...line.map((each) => seconds(each) / each.x)) : 0;
  return line.slice(1).flatMap((to, index) => {
    const from = line[index]!;
    const times = seconds(to) / (seconds(from) + perByte * (to.x - from.x));
    return times > cliffMin ? [{ from, to, times }] : [];
  });
}
