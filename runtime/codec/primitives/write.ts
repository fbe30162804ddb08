/**
 * Primitives of generated encoders. Each primitive writes at `at` and returns the end. The primitives with a
 * `limit` check the room first. The other values need a few bytes at most, which generated code has kept
 * free. The primitives with a `field` (its full name) refuse values of the wrong kind. They check first
 * whether a value is a number at all, because an operator applied to a bigint, a symbol or an object with
 * `valueOf` throws an error that is not a CodecError. Only generated code calls them, on the thread of the
 * call.
 */

import { mismatch } from '../error.ts';
import { checkFloat, floatRoundsAway } from '../float.ts';
import { lengthOf, plainBytes } from '../memory/intrinsic.ts';
import { writeWord } from '../memory/word.ts';
import { noRoom, outOfLineMax, type Writer } from '../memory/writer.ts';
import { checkAttached, checkBytes, checkList, checkString } from './check.ts';
import { highHalf, lowHalf, splitSigned, splitUnsigned, zigzag } from './int64.ts';
import { bigintOfNumber } from './jstype.ts';
import { lengthBytes, stringRoom } from './room.ts';
import { loopCharsMax, writeShort, writeUtf8 } from './text.ts';

/** This is a constant of this module, because V8 checks on each access whether an import is initialised. */
const floatLimit = floatRoundsAway;

/** Returns the size of a length as a varint. Lengths are below 2^32. */
export function varintSize(value: number): number {
  return value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : value < 0x1000_0000 ? 4 : 5;
}

/**
 * Writes any unsigned 32-bit value, or the int32 with the same bits. A store into bytes keeps the low eight
 * bits, which are seven bits of the value and the continuation bit.
 */
export function writeVarint(bytes: Uint8Array, at: number, value: number): number {
  const rest = value >>> 0;
  if (rest < 0x80) {
    bytes[at] = rest;
    return at + 1;
  }
  bytes[at] = rest | 128;
  if (rest < 0x4000) {
    bytes[at + 1] = rest >>> 7;
    return at + 2;
  }
  bytes[at + 1] = (rest >>> 7) | 128;
  if (rest < 0x20_0000) {
    bytes[at + 2] = rest >>> 14;
    return at + 3;
  }
  return writeWide(bytes, at, rest);
}

/** Writes values of more than three bytes, of which the first two are already written. */
function writeWide(bytes: Uint8Array, at: number, rest: number): number {
  bytes[at + 2] = (rest >>> 14) | 128;
  if (rest < 0x1000_0000) {
    bytes[at + 3] = rest >>> 21;
    return at + 4;
  }
  bytes[at + 3] = (rest >>> 21) | 128;
  bytes[at + 4] = rest >>> 28;
  return at + 5;
}

export function writeVarint64(bytes: Uint8Array, at: number, lo: number, hi: number): number {
  if (hi === 0) return writeVarint(bytes, at, lo);
  bytes[at] = lo | 128;
  bytes[at + 1] = (lo >>> 7) | 128;
  bytes[at + 2] = (lo >>> 14) | 128;
  bytes[at + 3] = (lo >>> 21) | 128;
  // `middle` has bits 28 to 59.
  const middle = (hi << 4) | (lo >>> 28);
  if (hi >>> 28 === 0) return writeVarint(bytes, at + 4, middle);
  bytes[at + 4] = middle | 128;
  bytes[at + 5] = (middle >>> 7) | 128;
  bytes[at + 6] = (middle >>> 14) | 128;
  bytes[at + 7] = (middle >>> 21) | 128;
  return writeVarint(bytes, at + 8, hi >>> 24);
}

export function writeInt32(bytes: Uint8Array, at: number, value: number, field: string): number {
  if (typeof value === 'number' && value === (value & 127)) {
    bytes[at] = value;
    return at + 1;
  }
  if (typeof value !== 'number' || value !== (value | 0))
    mismatch(field, value, 'a whole number from -2^31 to 2^31 - 1');
  // A negative int32 is sign-extended to 64 bits.
  return value < 0 ? writeVarint64(bytes, at, value, -1) : writeVarint(bytes, at, value);
}

export function writeUint32(bytes: Uint8Array, at: number, value: number, field: string): number {
  if (typeof value === 'number' && value === (value & 127)) {
    bytes[at] = value;
    return at + 1;
  }
  if (typeof value !== 'number' || value !== value >>> 0)
    mismatch(field, value, 'a whole number from 0 to 2^32 - 1');
  return writeVarint(bytes, at, value);
}

export function writeSint32(bytes: Uint8Array, at: number, value: number, field: string): number {
  if (typeof value !== 'number' || value !== (value | 0))
    mismatch(field, value, 'a whole number from -2^31 to 2^31 - 1');
  return writeVarint(bytes, at, (value << 1) ^ (value >> 31));
}

export function writeEnum(bytes: Uint8Array, at: number, value: number, field: string): number {
  if (typeof value !== 'number' || value !== (value | 0))
    mismatch(field, value, 'an enum value (a whole number from -2^31 to 2^31 - 1)');
  return value < 0 ? writeVarint64(bytes, at, value, -1) : writeVarint(bytes, at, value);
}

export function writeBool(bytes: Uint8Array, at: number, value: boolean, field: string): number {
  if (typeof value !== 'boolean') mismatch(field, value, 'a boolean');
  bytes[at] = value ? 1 : 0;
  return at + 1;
}

export function writeInt64(bytes: Uint8Array, at: number, value: bigint, field: string): number {
  splitSigned(value, field);
  return writeVarint64(bytes, at, lowHalf(), highHalf());
}

export function writeUint64(bytes: Uint8Array, at: number, value: bigint, field: string): number {
  splitUnsigned(value, field);
  return writeVarint64(bytes, at, lowHalf(), highHalf());
}

/**
 * Writes an int64 that is given as a number (`jstype = JS_NUMBER`), and creates no bigint for values of 32
 * bits.
 */
export function writeInt64Number(bytes: Uint8Array, at: number, value: number, field: string): number {
  if (typeof value === 'number' && value === value >>> 0) return writeVarint(bytes, at, value);
  return writeInt64(bytes, at, bigintOfNumber(value, field), field);
}

export function writeUint64Number(bytes: Uint8Array, at: number, value: number, field: string): number {
  if (typeof value === 'number' && value === value >>> 0) return writeVarint(bytes, at, value);
  return writeUint64(bytes, at, bigintOfNumber(value, field), field);
}

export function writeSint64(bytes: Uint8Array, at: number, value: bigint, field: string): number {
  splitSigned(value, field);
  zigzag();
  return writeVarint64(bytes, at, lowHalf(), highHalf());
}

export function writeFixed32(bytes: Uint8Array, at: number, value: number, field: string): number {
  if (typeof value !== 'number' || value !== value >>> 0)
    mismatch(field, value, 'a whole number from 0 to 2^32 - 1');
  return writeWord(bytes, at, value);
}

export function writeSfixed32(bytes: Uint8Array, at: number, value: number, field: string): number {
  if (typeof value !== 'number' || value !== (value | 0))
    mismatch(field, value, 'a whole number from -2^31 to 2^31 - 1');
  return writeWord(bytes, at, value);
}

export function writeFixed64(bytes: Uint8Array, at: number, value: bigint, field: string): number {
  splitUnsigned(value, field);
  return writeWord(bytes, writeWord(bytes, at, lowHalf()), highHalf());
}

export function writeSfixed64(bytes: Uint8Array, at: number, value: bigint, field: string): number {
  splitSigned(value, field);
  return writeWord(bytes, writeWord(bytes, at, lowHalf()), highHalf());
}

export function writeFloat(writer: Writer, at: number, value: number, field: string): number {
  if (typeof value !== 'number') mismatch(field, value, 'a number');
  if (!(Math.abs(value) < floatLimit)) checkFloat(value, field);
  writer.view.setFloat32(at, value, true);
  return at + 4;
}

export function writeDouble(writer: Writer, at: number, value: number, field: string): number {
  if (typeof value !== 'number') mismatch(field, value, 'a number');
  writer.view.setFloat64(at, value, true);
  return at + 8;
}

/**
 * These are constants of this module, because V8 checks on each access whether an import is initialised and
 * whether it still is the same function.
 */
const shortMax = loopCharsMax;
const prefixMax = lengthBytes;
const loopText = writeShort;

/**
 * Writes the length and the text. The function is small because V8 inlines it into its callers together with
 * the loop. Another function handles everything except a short string that fits.
 */
export function writeString(writer: Writer, at: number, text: string, limit: number, field: string): number {
  if (typeof text !== 'string' || text.length > shortMax || at + prefixMax + 3 * text.length > limit)
    return writeLongString(writer, at, text, limit, field);
  const { bytes } = writer;
  // At three bytes per character at most, the text has fewer than 128 bytes, so its length takes one byte.
  const end = loopText(bytes, at + 1, text);
  bytes[at] = end - at - 1;
  return end;
}

/** V8 treats a const as constant, whereas a function's own name might be reassigned. */
const putString = writeString;

/**
 * Writes a list of strings, each behind `tag`, which is one byte. Each string leaves enough room for the next
 * tag, so the first string that does not fit ends the list.
 */
export function writeStrings(
  writer: Writer,
  at: number,
  tag: number,
  list: readonly string[],
  limit: number,
  field: string,
): number {
  checkList(list, field);
  const { bytes } = writer;
  for (let i = 0; i < list.length && !writer.full; i++) {
    bytes[at] = tag;
    at = putString(writer, at + 1, list[i] as string, limit, field);
  }
  return at;
}

/** Writes a list of strings as `putStrings` does. The list may be absent. */
export function writeStringsField(
  writer: Writer,
  at: number,
  tag: number,
  list: readonly string[] | undefined,
  limit: number,
  field: string,
): number {
  return list === undefined ? at : putStrings(writer, at, tag, list, limit, field);
}
const putStrings = writeStrings;

export function writeLongString(
  writer: Writer,
  at: number,
  text: string,
  limit: number,
  field: string,
): number {
  checkString(text, field);
  if (at + stringRoom(text) > limit) return noRoom(writer, at);
  const { bytes } = writer;
  // Compute the room for the prefix as if the text were ASCII.
  const start = at + varintSize(text.length);
  return putLength(bytes, at, start, writeUtf8(bytes, start, text));
}

/**
 * Writes the length of [start, end) at `at`. Moves the content if the length needs a different number of
 * bytes than was kept free.
 */
export function putLength(bytes: Uint8Array, at: number, start: number, end: number): number {
  const length = end - start;
  const size = varintSize(length);
  if (at + size !== start) bytes.copyWithin(at + size, start, end);
  writeVarint(bytes, at, length);
  return at + size + length;
}

/** Below this size a loop is faster than one call of `set`. */
const loopBytesMax = 12;
const ownLength = lengthOf;

/**
 * Writes the length and the value. A value that is long enough is recorded as an out-of-line value instead.
 */
export function writeBytes(
  writer: Writer,
  at: number,
  value: Uint8Array,
  limit: number,
  field: string,
): number {
  checkBytes(value, field);
  const bytes = writer.bytes;
  const length = ownLength(value);
  if (length === 0) checkAttached(value, field);
  const apart = length >= writer.gatherBytes && length !== 0 && writer.outOfLine < outOfLineMax;
  if (at + lengthBytes + (apart ? 0 : length) > limit) return noRoom(writer, at);
  at = writeVarint(bytes, at, length);
  if (apart) {
    writer.addOutOfLine(at, plainBytes(value));
    return at;
  }
  if (length <= loopBytesMax) for (let i = 0; i < length; i++) bytes[at + i] = value[i] as number;
  else bytes.set(value, at);
  return at + length;
}

/**
 * Writes the length of a message at `at`. The message consists of [at + 1 + wide, end) and of the out-of-line
 * values that were recorded since `held` was read. If the length needs a different number of bytes than `1 +
 * wide`, the content is moved together with its out-of-line values.
 */
export function closeLength(writer: Writer, at: number, held: number, end: number, wide = 0): number {
  if (wide !== 0 || end - at > 128 || writer.held !== held) return closeWide(writer, at, held, end, wide);
  writer.bytes[at] = end - at - 1;
  return end;
}

/**
 * Does the same as `closeLength`, for a message type that has no out-of-line values, because it contains no
 * `bytes`.
 */
export function closeSolid(bytes: Uint8Array, at: number, end: number, wide = 0): number {
  if (wide !== 0 || end - at > 128) return putLength(bytes, at, at + 1 + wide, end);
  bytes[at] = end - at - 1;
  return end;
}

export function closeWide(writer: Writer, at: number, held: number, end: number, wide: number): number {
  const start = at + 1 + wide;
  const length = end - start + writer.held - held;
  const shift = varintSize(length) - 1 - wide;
  if (shift !== 0) {
    writer.bytes.copyWithin(start + shift, start, end);
    for (let i = writer.outOfLine - 1; i >= 0 && (writer.outOfLineAt[i] as number) > at; i--) {
      writer.outOfLineAt[i] = (writer.outOfLineAt[i] as number) + shift;
    }
  }
  writeVarint(writer.bytes, at, length);
  return end + shift;
}
