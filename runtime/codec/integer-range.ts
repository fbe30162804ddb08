/**
 * The ranges of the integer types, for code that checks values by a field's description: JSON, messages in
 * MessagePack. Generated code has range checks of its own.
 */
import { mismatch } from './error.ts';
import type { Scalar } from './types.ts';

const ranges = {
  int32: [-(2 ** 31), 2 ** 31 - 1],
  sint32: [-(2 ** 31), 2 ** 31 - 1],
  sfixed32: [-(2 ** 31), 2 ** 31 - 1],
  uint32: [0, 2 ** 32 - 1],
  fixed32: [0, 2 ** 32 - 1],
} as const;

/** An integer type of at most 32 bits. */
export type Narrow = keyof typeof ranges;

/** Checks the range. `given` is the value that an error text shows. */
export function whole(value: number, scalar: Narrow, path: string, given: unknown = value): number {
  const [min, max] = ranges[scalar];
  if (!(Number.isInteger(value) && value >= min && value <= max))
    mismatch(path, given, `a whole number from ${min} to ${max}`);
  return value + 0;
}

/** Does the same as `whole`, for 64-bit types. */
export function wide(value: bigint, scalar: Scalar, path: string, given: unknown = value): bigint {
  const unsigned = scalar === 'uint64' || scalar === 'fixed64';
  const fits = unsigned ? BigInt.asUintN(64, value) : BigInt.asIntN(64, value);
  if (fits !== value)
    mismatch(path, given, `a whole number from ${unsigned ? '0 to 2^64 - 1' : '-2^63 to 2^63 - 1'}`);
  return value;
}
