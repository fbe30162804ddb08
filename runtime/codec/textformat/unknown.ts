/**
 * Reads unknown fields for text format: numbers, and nested fields where bytes look like a message. print.ts
 * calls these functions.
 */

import { Source } from '../memory/source.ts';
import { readTag, skipField } from '../primitives/read.ts';
import { quoteBytes } from './escape.ts';

export interface UnknownField {
  readonly number: number;
  /** Text of a value, or the fields of a message. */
  readonly value: string | readonly UnknownField[];
}

/** Depth limit for bytes that only look like a message. Bytes at a greater depth are shown as bytes. */
const guessDepth = 10;

/** Throws CodecError for malformed bytes. */
export function unknownFields(bytes: Uint8Array, depth = 0): UnknownField[] {
  const source = new Source();
  source.reset(bytes);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const result: UnknownField[] = [];
  for (let at = 0; at < bytes.length; ) {
    const tag = readTag(source, at, bytes.length);
    const start = source.at;
    at = skipField(source, tag, start, bytes.length, 0);
    const number = tag >>> 3;
    const value = (): UnknownField['value'] => {
      switch (tag & 7) {
        case 0:
          return String(varint(bytes, start));
        case 1:
          return `0x${view.getBigUint64(start, true).toString(16).padStart(16, '0')}`;
        case 5:
          return `0x${view.getUint32(start, true).toString(16).padStart(8, '0')}`;
        case 2:
          return delimited(bytes.subarray(at - Number(varint(bytes, start)), at), depth);
        default: {
          // The content of a group, without its end tag.
          let end = at - 1;
          while (end > start && ((bytes[end - 1] as number) & 128) !== 0) end--;
          return unknownFields(bytes.subarray(start, end), depth);
        }
      }
    };
    result.push({ number, value: value() });
  }
  return result;
}

function varint(bytes: Uint8Array, at: number): bigint {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = bytes[at++] as number;
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return BigInt.asUintN(64, value);
  }
}

function delimited(bytes: Uint8Array, depth: number): UnknownField['value'] {
  if (bytes.length === 0 || depth >= guessDepth) return quoteBytes(bytes);
  try {
    return unknownFields(bytes, depth + 1);
  } catch {
    return quoteBytes(bytes);
  }
}
