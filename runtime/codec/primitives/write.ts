/**
 * Primitives of generated encoders. Each writes at `at` and returns the end. Those that take a `limit` look
 * for room first; for the others, which need a few bytes at most, generated code has kept it free. Those that
 * take a `field` (its full name) refuse values of the wrong kind. Whether something is a number at all is
 * asked first: an operator that meets a bigint, a symbol or `valueOf` throws an error that is not ours.
 * Called by generated code only, on the thread of the call.
 */

import { mismatch } from '../error.ts';
import { checkFloat, floatRoundsAway } from '../float.ts';
import { lengthOf, plainBytes } from '../memory/intrinsic.ts';
import { holesMax, noRoom, type Sink } from '../memory/sink.ts';
import { writeWord } from '../memory/word.ts';
import { checkAttached, checkBytes, checkList, checkString } from './check.ts';
import { highHalf, lowHalf, splitSigned, splitUnsigned, zigzag } from './int64.ts';
import { bigintOfNumber } from './jstype.ts';
import { lengthBytes, stringRoom } from './room.ts';
import { loopCharsMax, writeShort, writeUtf8 } from './text.ts';

/** Of this module, as V8 asks of an import whether it has its value yet. */
const floatLimit = floatRoundsAway;

/** Bytes of a length as a varint. Lengths stay below 2^32. */
export function varintSize(value: number): number {
  return value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : value < 0x1000_0000 ? 4 : 5;
}

/**
 * Any unsigned 32-bit value (or its int32 twin). A store into bytes keeps the low eight bits: seven of the
 * value and the mark.
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

/** More than three bytes, of which the first two are there. */
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
  // Bits 28 to 59.
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

/** An int64 given as a number (`jstype = JS_NUMBER`); no bigint is made for what 32 bits hold. */
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

export function writeFloat(sink: Sink, at: number, value: number, field: string): number {
  if (typeof value !== 'number') mismatch(field, value, 'a number');
  if (!(Math.abs(value) < floatLimit)) checkFloat(value, field);
  sink.view.setFloat32(at, value, true);
  return at + 4;
}

export function writeDouble(sink: Sink, at: number, value: number, field: string): number {
  if (typeof value !== 'number') mismatch(field, value, 'a number');
  sink.view.setFloat64(at, value, true);
  return at + 8;
}

/**
 * Of this module and not of another: V8 asks every time whether an import has its value yet, and whether it
 * is the function that it was.
 */
const shortMax = loopCharsMax;
const prefixMax = lengthBytes;
const loopText = writeShort;

/**
 * Length and text. Small, since V8 copies it into its callers together with the loop; all that is not a short
 * string that fits is apart.
 */
export function writeString(sink: Sink, at: number, text: string, limit: number, field: string): number {
  if (typeof text !== 'string' || text.length > shortMax || at + prefixMax + 3 * text.length > limit)
    return writeLongString(sink, at, text, limit, field);
  const { bytes } = sink;
  // Three bytes per character stay below 128: the length has one byte.
  const end = loopText(bytes, at + 1, text);
  bytes[at] = end - at - 1;
  return end;
}

/** V8 takes a const for what it is; a function's own name might come to mean another one. */
const putString = writeString;

/**
 * A list of strings, each behind `tag`, which is one byte. What one leaves free suffices for the next one's
 * tag, so the first without room ends the list.
 */
export function writeStrings(
  sink: Sink,
  at: number,
  tag: number,
  list: readonly string[],
  limit: number,
  field: string,
): number {
  checkList(list, field);
  const { bytes } = sink;
  for (let i = 0; i < list.length && !sink.full; i++) {
    bytes[at] = tag;
    at = putString(sink, at + 1, list[i] as string, limit, field);
  }
  return at;
}

/** The same for a list that may be absent. */
export function writeStringsField(
  sink: Sink,
  at: number,
  tag: number,
  list: readonly string[] | undefined,
  limit: number,
  field: string,
): number {
  return list === undefined ? at : putStrings(sink, at, tag, list, limit, field);
}
const putStrings = writeStrings;

export function writeLongString(sink: Sink, at: number, text: string, limit: number, field: string): number {
  checkString(text, field);
  if (at + stringRoom(text) > limit) return noRoom(sink, at);
  const { bytes } = sink;
  // The prefix is guessed as for ASCII.
  const start = at + varintSize(text.length);
  return putLength(bytes, at, start, writeUtf8(bytes, start, text));
}

/**
 * Puts the length of [start, end) at `at`; content that has been written too far in front for that is moved.
 */
export function putLength(bytes: Uint8Array, at: number, start: number, end: number): number {
  const length = end - start;
  const size = varintSize(length);
  if (at + size !== start) bytes.copyWithin(at + size, start, end);
  writeVarint(bytes, at, length);
  return at + size + length;
}

/** Below this a loop beats one call of `set`. */
const loopBytesMax = 12;
const ownLength = lengthOf;

/** Length and value; the value is left out when it is long enough for a hole. */
export function writeBytes(sink: Sink, at: number, value: Uint8Array, limit: number, field: string): number {
  checkBytes(value, field);
  const bytes = sink.bytes;
  const length = ownLength(value);
  if (length === 0) checkAttached(value, field);
  const apart = length >= sink.gatherBytes && length !== 0 && sink.holes < holesMax;
  if (at + lengthBytes + (apart ? 0 : length) > limit) return noRoom(sink, at);
  at = writeVarint(bytes, at, length);
  if (apart) {
    sink.hole(at, plainBytes(value));
    return at;
  }
  if (length <= loopBytesMax) for (let i = 0; i < length; i++) bytes[at + i] = value[i] as number;
  else bytes.set(value, at);
  return at + length;
}

/**
 * Puts the length of a message at `at`: of [at + 1 + wide, end) and the holes recorded since `held` was read.
 * Where that takes other than `1 + wide` bytes the content is moved, and the holes in it.
 */
export function closeLength(sink: Sink, at: number, held: number, end: number, wide = 0): number {
  if (wide !== 0 || end - at > 128 || sink.held !== held) return closeWide(sink, at, held, end, wide);
  sink.bytes[at] = end - at - 1;
  return end;
}

/** The same for a message that has no hole whatever its values: of `bytes`, there are none in it. */
export function closeSolid(bytes: Uint8Array, at: number, end: number, wide = 0): number {
  if (wide !== 0 || end - at > 128) return putLength(bytes, at, at + 1 + wide, end);
  bytes[at] = end - at - 1;
  return end;
}

export function closeWide(sink: Sink, at: number, held: number, end: number, wide: number): number {
  const start = at + 1 + wide;
  const length = end - start + sink.held - held;
  const shift = varintSize(length) - 1 - wide;
  if (shift !== 0) {
    sink.bytes.copyWithin(start + shift, start, end);
    for (let i = sink.holes - 1; i >= 0 && (sink.holeAt[i] as number) > at; i--) {
      sink.holeAt[i] = (sink.holeAt[i] as number) + shift;
    }
  }
  writeVarint(sink.bytes, at, length);
  return end + shift;
}
