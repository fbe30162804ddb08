/**
 * 64-bit fields that are strings or numbers, since the .proto (`jstype`) or the generator's option `int64`
 * says so: to and from bigint. Called by generated code around the bigint readers and writers.
 */
import { CodecError, mismatch } from '../error.ts';
import type { Source } from '../memory/source.ts';

/** Decimal digits with an optional sign; nothing else that BigInt() would take. */
const decimal = /^-?\d{1,20}$/;

export function bigintOfString(value: string, field: string): bigint {
  if (typeof value !== 'string' || !decimal.test(value)) mismatch(field, value, 'a string of decimal digits');
  return BigInt(value);
}

export function bigintOfNumber(value: number, field: string): bigint {
  if (!Number.isSafeInteger(value)) mismatch(field, value, 'a whole number within ±(2^53 - 1)');
  return BigInt(value);
}

/** Refuses what a number cannot hold exactly rather than rounding it. */
export function numberOfBigint(source: Source, value: bigint, field: string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) {
    const remedy = 'have it generated as bigint or string (int64, jstype)';
    // The field's own name: that of the message would only repeat its beginning.
    throw new CodecError(field, `${value} does not fit a number: ${remedy}`, source.at - source.origin);
  }
  return number;
}
