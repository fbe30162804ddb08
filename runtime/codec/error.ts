/**
 * The only error class that the codec throws, for any content of a message or of a peer's bytes. The
 * generated code and its primitives throw it; the runtime turns it into a status.
 */
import { brand } from './brand.ts';
import { disown } from './disown.ts';

const textMax = 512;
const wordMax = 80;

/**
 * Shortens a text that contains names. Names in JSON and text format may be as long as a peer likes, so the
 * error shows only their beginning.
 */
function brief(text: string): string {
  if (text.length <= textMax) return text;
  const cut = (word: string) => (word.length <= wordMax ? word : `${word.slice(0, wordMax - 1)}…`);
  const words = text
    .slice(0, textMax * 4)
    .split(' ')
    .map(cut)
    .join(' ');
  const rest = text.length > textMax * 4 ? text.slice(-textMax).split(' ').slice(1).map(cut).join(' ') : '';
  return rest === '' ? words : `${words} ${rest}`;
}

/** A message that cannot be encoded, or bytes that are not a valid encoding. */
export class CodecError extends Error {
  override readonly name = 'CodecError';
  /**
   * The position of the error when decoding, in bytes from the start of the message. It is undefined when
   * encoding.
   */
  readonly offset: number | undefined;
  /**
   * The full name of the field when encoding, for example `kv.v1.PutRequest.key`. When decoding, it is the
   * full name of the message being read, or of a field whose TypeScript type cannot hold the received value.
   */
  readonly path: string;
  /** The problem, without path and offset. */
  readonly reason: string;

  constructor(path: string, reason: string, offset?: number) {
    path = brief(path);
    reason = brief(reason);
    super(offset === undefined ? `${path}: ${reason}` : `${path}: ${reason} (at byte ${offset})`);
    this.path = path;
    this.reason = reason;
    this.offset = offset;
  }

  static {
    brand(CodecError, 'CodecError');
  }
}

/** Describes a wrong value for an error text, printing no more than a short part of it. */
function describe(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return `string ${JSON.stringify(value.length > 32 ? `${value.slice(0, 32)}…` : value)}`;
    case 'number':
      return `number ${Object.is(value, -0) ? '-0' : value}`;
    case 'bigint': {
      const digits = value < 0n ? -value < 1n << 80n : value < 1n << 80n;
      return digits ? `bigint ${value}n` : 'a very long bigint';
    }
    case 'boolean':
      return `boolean ${value}`;
    case 'object':
      if (ArrayBuffer.isView(value)) return `one of ${value.constructor.name}`;
      return value === null ? 'null' : Array.isArray(value) ? 'an array' : 'an object';
    default:
      return typeof value;
  }
}

/** Throws for a value that cannot be encoded. `field` is the full name of the field. */
export function mismatch(field: string, value: unknown, expected: string): never {
  disown(value);
  throw new CodecError(field, `expected ${expected}, got ${describe(value)}`);
}
