/**
 * Converts 64-bit integers to two 32-bit halves and back. A shared scratch array is several times faster than
 * shifts and masks on bigints, and it allocates nothing when encoding. The readers and writers of varints and
 * fixed64 fields call these functions.
 */
import { endianness } from 'node:os';
import { mismatch } from '../error.ts';

const signed = new BigInt64Array(1);
const unsigned = new BigUint64Array(signed.buffer);
const halves = new Int32Array(signed.buffer);
/** Index of the low half. */
export const lowIndex = endianness() === 'LE' ? 0 : 1;
const low = lowIndex;
const high = 1 - low;

/**
 * The scratch arrays for many values. The halves that were written here are read as bigints in a second pass,
 * because a read of eight bytes has to wait for writes of four.
 */
export const manyValues = 128;
export const manySigned = new BigInt64Array(manyValues);
export const manyUnsigned = new BigUint64Array(manySigned.buffer);
export const manyHalves = new Int32Array(manySigned.buffer);

/** Returns the low half of the value last given to a split function, as int32. */
export function lowHalf(): number {
  return halves[low] as number;
}

/** Returns the high half of the value last given to a split function, as int32. */
export function highHalf(): number {
  return halves[high] as number;
}

export function splitSigned(value: bigint, field: string): void {
  if (typeof value !== 'bigint') mismatch(field, value, 'a bigint');
  if (BigInt.asIntN(64, value) !== value) mismatch(field, value, 'a bigint from -2^63 to 2^63 - 1');
  signed[0] = value;
}

export function splitUnsigned(value: bigint, field: string): void {
  if (typeof value !== 'bigint') mismatch(field, value, 'a bigint');
  if (BigInt.asUintN(64, value) !== value) mismatch(field, value, 'a bigint from 0 to 2^64 - 1');
  unsigned[0] = value;
}

export function joinSigned(lo: number, hi: number): bigint {
  halves[low] = lo;
  halves[high] = hi;
  return signed[0] as bigint;
}

export function joinUnsigned(lo: number, hi: number): bigint {
  halves[low] = lo;
  halves[high] = hi;
  return unsigned[0] as bigint;
}

/** Zigzag-encodes the halves just split, in place. */
export function zigzag(): void {
  const lo = halves[low] as number;
  const hi = halves[high] as number;
  const sign = hi >> 31;
  halves[high] = ((hi << 1) | (lo >>> 31)) ^ sign;
  halves[low] = (lo << 1) ^ sign;
}

/** Returns the signed value of zigzag-encoded halves. */
export function joinZigzag(lo: number, hi: number): bigint {
  const sign = -(lo & 1);
  return joinSigned(((lo >>> 1) | (hi << 31)) ^ sign, (hi >>> 1) ^ sign);
}
