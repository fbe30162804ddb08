/** Reads numbers, words and strings of text format for a given type. parse.ts calls these functions. */
import type { Field } from '../fields.ts';
import type { Scalar } from '../types.ts';
import { bytesOfQuoted } from './escape.ts';
import type { TextLexer } from './lexer.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const signed = /^(?:s?int|sfixed)/;

function rangeOf(scalar: Scalar): readonly [least: bigint, most: bigint] {
  const bits = scalar.endsWith('64') ? 64n : 32n;
  return signed.test(scalar) ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n] : [0n, (1n << bits) - 1n];
}

function readInteger(lexer: TextLexer, [least, most]: readonly [bigint, bigint]): bigint {
  const start = lexer.token.at;
  const negative = lexer.accept('-');
  if (lexer.token.kind !== 'int') lexer.expected('a whole number');
  const { text } = lexer.next();
  const plain = BigInt(/^0\d/.test(text) ? `0o${text.slice(1)}` : text);
  const value = negative ? -plain : plain;
  if (value < least || value > most) lexer.fail(`${value} is not from ${least} to ${most}`, start);
  return value;
}

function readFloat(lexer: TextLexer, single: boolean): number {
  const negative = lexer.accept('-');
  const { kind, text } = lexer.token;
  let value: number;
  if (kind === 'name') {
    const word = text.toLowerCase();
    if (word === 'inf' || word === 'infinity') value = Number.POSITIVE_INFINITY;
    else if (word === 'nan') value = Number.NaN;
    else return lexer.expected('a number, inf or nan');
  } else if (kind === 'float' || (kind === 'int' && !/^0./.test(text)))
    value = Number(text.replace(/[fF]$/, ''));
  else return lexer.expected('a decimal number, inf or nan');
  lexer.next();
  if (negative) value = -value;
  return single ? Math.fround(value) : value;
}

const words: Readonly<Record<string, boolean>> = {
  true: true,
  True: true,
  t: true,
  false: false,
  False: false,
  f: false,
};

function readBool(lexer: TextLexer): boolean {
  if (lexer.token.kind === 'int') return readInteger(lexer, [0n, 1n]) === 1n;
  const value =
    lexer.token.kind === 'name' && Object.hasOwn(words, lexer.token.text)
      ? words[lexer.token.text]
      : undefined;
  if (value === undefined) return lexer.expected('true or false');
  lexer.next();
  return value;
}

/** Reads one or more adjacent strings. */
function readBytes(lexer: TextLexer): Uint8Array {
  if (lexer.token.kind !== 'string') lexer.expected('a string in quotes');
  const parts: Uint8Array[] = [];
  while (lexer.token.kind === 'string') {
    const { text, at } = lexer.next();
    const bytes = bytesOfQuoted(text.slice(1, -1), 'refused');
    if (typeof bytes === 'string') lexer.fail(bytes, at);
    else parts.push(bytes);
  }
  return new Uint8Array(Buffer.concat(parts));
}

function readText(lexer: TextLexer): string {
  const { at } = lexer.token;
  try {
    return utf8.decode(readBytes(lexer));
  } catch (error) {
    if (error instanceof TypeError) return lexer.fail('this string is not valid UTF-8', at);
    throw error;
  }
}

/** Numbers outside the enum are accepted unless the enum is closed. */
function readEnum(lexer: TextLexer, names: { readonly [name: string]: number }, closed: boolean): number {
  const { kind, text } = lexer.token;
  if (kind !== 'name') {
    const { at } = lexer.token;
    const number = Number(readInteger(lexer, rangeOf('int32')));
    if (closed && !Object.values(names).includes(number))
      lexer.fail(`${number} is not a value of this closed enum`, at);
    return number;
  }
  const value = Object.hasOwn(names, text) ? names[text] : undefined;
  if (value === undefined) return lexer.expected(`one of ${Object.keys(names).slice(0, 8).join(', ')}`);
  lexer.next();
  return value;
}

/** Reads one value of a field that is not a message. */
export function readScalar(
  lexer: TextLexer,
  scalar: Scalar | undefined,
  { enum: names = {}, closed, jstype }: Pick<Field, 'enum' | 'closed' | 'jstype'>,
): unknown {
  switch (scalar) {
    case undefined:
      return readEnum(lexer, names, closed);
    case 'string':
      return readText(lexer);
    case 'bytes':
      return readBytes(lexer);
    case 'bool':
      return readBool(lexer);
    case 'float':
    case 'double':
      return readFloat(lexer, scalar === 'float');
    default: {
      const { at } = lexer.token;
      const value = readInteger(lexer, rangeOf(scalar));
      if (!scalar.endsWith('64')) return Number(value);
      if (jstype === 'bigint') return value;
      if (jstype === 'string') return String(value);
      if (!Number.isSafeInteger(Number(value)))
        lexer.fail(`${value} is not within ±(2^53 - 1) (JS_NUMBER)`, at);
      return Number(value);
    }
  }
}
