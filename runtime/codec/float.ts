/**
 * The range of `float`, and decimal texts of floats. Encoders, JSON, text format and messages in MessagePack
 * call these functions.
 */
import { mismatch } from './error.ts';

const floatMax = 3.4028234663852886e38;
/** Numbers of at least this size round to infinity. It lies half a step beyond the largest float. */
export const floatRoundsAway = 3.4028235677973366e38;

/** Throws for a number that is too large for a float. Infinity and NaN are allowed. */
export function checkFloat(value: number, field: string): void {
  if (Math.abs(value) >= floatRoundsAway && Number.isFinite(value))
    mismatch(field, value, `a number of at most ±${floatMax}`);
}

/** `digitsKept` decimal digits of a float are always preserved; `digitsMax` digits identify any float. */
const digitsKept = 6;
const digitsMax = 9;

/** Returns the number with the fewest digits that is the same float: 0.1 for 0.10000000149011612. */
export function shortFloat(value: number): number {
  const float = Math.fround(value);
  for (let digits = digitsKept; digits < digitsMax; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === float) return short;
  }
  return Number(value.toPrecision(digitsMax));
}
