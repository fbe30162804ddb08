/** Parses numbers in options and defaults, for a given type. */
import type { ScalarName } from '../descriptor/types.ts';
import type { OptionValue } from '../source/parsed.ts';

const signed = new Set<ScalarName>(['int32', 'sint32', 'sfixed32', 'int64', 'sint64', 'sfixed64']);

/** Returns the least and the greatest value of an integer type. */
export function integerRange(type: string): [bigint, bigint] {
  const bits = type.endsWith('64') ? 64n : 32n;
  return signed.has(type as ScalarName)
    ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n]
    : [0n, (1n << bits) - 1n];
}

/** Returns undefined when the value is not a whole number or does not fit the type. */
export function integerOf(value: OptionValue, type: string): bigint | undefined {
  if (value.kind !== 'int') return undefined;
  const negative = value.text.startsWith('-');
  const digits = negative ? value.text.slice(1) : value.text;
  const plain = BigInt(/^0\d/.test(digits) ? `0o${digits.slice(1)}` : digits);
  const number = negative ? -plain : plain;
  const [least, most] = integerRange(type);
  // -0 is not a value of an unsigned type.
  if (negative && least === 0n) return undefined;
  return number >= least && number <= most ? number : undefined;
}

const words: Readonly<Record<string, number>> = { inf: Infinity, infinity: Infinity, nan: NaN };

export function floatOf(value: OptionValue, type: 'float' | 'double'): number | undefined {
  if (value.kind !== 'int' && value.kind !== 'float' && value.kind !== 'name') return undefined;
  const negative = value.text.startsWith('-');
  const text = (negative ? value.text.slice(1) : value.text).toLowerCase();
  const number =
    value.kind === 'name' ? words[text] : Number(/^0[0-7]+$/.test(text) ? `0o${text.slice(1)}` : text);
  if (number === undefined) return undefined;
  const result = negative ? -number : number;
  return type === 'float' ? Math.fround(result) : result;
}
