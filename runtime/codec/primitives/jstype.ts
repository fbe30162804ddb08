/**
 * Converts 64-bit fields that are declared as strings or numbers to and from bigint. The declaration comes
 * from the .proto (`jstype`) or from the generator's option `int64`. Generated code calls it around the
 * bigint readers and writers.
 */
import { CodecError, mismatch } from '../error.ts';
import type { Source } from '../memory/source.ts';

/** Matches decimal digits with an optional sign. BigInt() would also accept other texts. */
const decimal = /^-?\d{1,20}$/;

export function bigintOfString(value: string, field: string): bigint {
  if (typeof value !== 'string' || !decimal.test(value)) mismatch(field, value, 'a string of decimal digits');
  return BigInt(value);
}

export function bigintOfNumber(value: number, field: string): bigint {
  if (!Number.isSafeInteger(value)) mismatch(field, value, 'a whole number within ±(2^53 - 1)');
  return BigInt(value);
}

/** Throws for a value that a number cannot hold exactly, instead of rounding it. */
export function numberOfBigint(source: Source, value: bigint, field: string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) {
    const remedy = 'have it generated as bigint or string (int64, jstype)';
    // The error names the field; the message's name would only repeat its beginning.
    throw new CodecError(field, `${value} does not fit a number: ${remedy}`, source.at - source.origin);
  }
  return number;
}
