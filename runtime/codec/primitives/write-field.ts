/**
 * Primitives of generated encoders for whole fields. They are like those of write.ts. In addition, they write
 * the last byte of the tag (nearly always its only byte) in front of the value. Generated code has kept room
 * for that byte. Generated code therefore has one store less per field, and compiles faster. The primitives
 * of the most frequent types repeat the code of write.ts, so that V8 inlines only one function into their
 * callers instead of two. Only generated code calls them, on the thread of the call.
 */

import { mismatch } from '../error.ts';
import { checkFloat, floatRoundsAway } from '../float.ts';
import type { Writer } from '../memory/writer.ts';
import { writeBulk } from './bulk-field.ts';
import { highHalf, lowHalf, splitSigned, splitUnsigned } from './int64.ts';
import { lengthBytes } from './room.ts';
import { loopCharsMax, writeShort } from './text.ts';
import {
  closeWide,
  putLength,
  writeBytes,
  writeFixed32,
  writeFixed64,
  writeInt64Number,
  writeLongString,
  writeSfixed32,
  writeSfixed64,
  writeSint64,
  writeUint64Number,
  writeVarint,
  writeVarint64,
} from './write.ts';

/** This is a constant of this module, because V8 checks on each access whether an import is initialised. */
const floatLimit = floatRoundsAway;

/**
 * These are constants of this module, because V8 checks on each access whether an import is initialised and
 * whether it still is the same function.
 */
const putVarint = writeVarint;
const putVarint64 = writeVarint64;
const putFixed32 = writeFixed32;
const putFixed64 = writeFixed64;
const putSfixed32 = writeSfixed32;
const putSfixed64 = writeSfixed64;
const putSint64 = writeSint64;
const putText = writeShort;
const textMax = loopCharsMax;
const prefixMax = lengthBytes;

export function writeInt32Field(
  bytes: Uint8Array,
  at: number,
  tag: number,
  value: number,
  field: string,
): number {
  bytes[at] = tag;
  if (typeof value === 'number' && value === (value & 127)) {
    bytes[at + 1] = value;
    return at + 2;
  }
  if (typeof value !== 'number' || value !== (value | 0))
    mismatch(field, value, 'a whole number from -2^31 to 2^31 - 1');
  // A negative int32 is sign-extended to 64 bits.
  return value < 0 ? putVarint64(bytes, at + 1, value, -1) : putVarint(bytes, at + 1, value);
}

export function writeUint32Field(
  bytes: Uint8Array,
  at: number,
  tag: number,
  value: number,
  field: string,
): number {
  bytes[at] = tag;
  if (typeof value === 'number' && value === (value & 127)) {
    bytes[at + 1] = value;
    return at + 2;
  }
  if (typeof value !== 'number' || value !== value >>> 0)
    mismatch(field, value, 'a whole number from 0 to 2^32 - 1');
  return putVarint(bytes, at + 1, value);
}

export function writeSint32Field(
  bytes: Uint8Array,
  at: number,
  tag: number,
  value: number,
  field: string,
): number {
  if (typeof value !== 'number' || value !== (value | 0))
    mismatch(field, value, 'a whole number from -2^31 to 2^31 - 1');
  bytes[at] = tag;
  return putVarint(bytes, at + 1, (value << 1) ^ (value >> 31));
}

export function writeEnumField(
  bytes: Uint8Array,
  at: number,
  tag: number,
  value: number,
  field: string,
): number {
  if (typeof value !== 'number' || value !== (value | 0))
    mismatch(field, value, 'an enum value (a whole number from -2^31 to 2^31 - 1)');
  bytes[at] = tag;
  return value < 0 ? putVarint64(bytes, at + 1, value, -1) : putVarint(bytes, at + 1, value);
}

export function writeBoolField(
  bytes: Uint8Array,
  at: number,
  tag: number,
  value: boolean,
  field: string,
): number {
  if (typeof value !== 'boolean') mismatch(field, value, 'a boolean');
  bytes[at] = tag;
  bytes[at + 1] = value ? 1 : 0;
  return at + 2;
}

export function writeInt64Field(
  bytes: Uint8Array,
  at: number,
  tag: number,
  value: bigint,
  field: string,
): number {
  splitSigned(value, field);
  bytes[at] = tag;
  return putVarint64(bytes, at + 1, lowHalf(), highHalf());
}

export function writeUint64Field(
  bytes: Uint8Array,
  at: number,
  tag: number,
  value: bigint,
  field: string,
): number {
  splitUnsigned(value, field);
  bytes[at] = tag;
  return putVarint64(bytes, at + 1, lowHalf(), highHalf());
}

export function writeInt64NumberField(
  bytes: Uint8Array,
  at: number,
  tag: number,
  value: number,
  field: string,
): number {
  bytes[at] = tag;
  return writeInt64Number(bytes, at + 1, value, field);
}

export function writeUint64NumberField(
  bytes: Uint8Array,
  at: number,
  tag: number,
  value: number,
  field: string,
): number {
  bytes[at] = tag;
  return writeUint64Number(bytes, at + 1, value, field);
}

export function writeSint64Field(
  bytes: Uint8Array,
  at: number,
  tag: number,
  value: bigint,
  field: string,
): number {
  bytes[at] = tag;
  return putSint64(bytes, at + 1, value, field);
}

export function writeFixed32Field(
  bytes: Uint8Array,
  at: number,
  tag: number,
  value: number,
  field: string,
): number {
  bytes[at] = tag;
  return putFixed32(bytes, at + 1, value, field);
}

export function writeSfixed32Field(
  bytes: Uint8Array,
  at: number,
  tag: number,
  value: number,
  field: string,
): number {
  bytes[at] = tag;
  return putSfixed32(bytes, at + 1, value, field);
}

export function writeFixed64Field(
  bytes: Uint8Array,
  at: number,
  tag: number,
  value: bigint,
  field: string,
): number {
  bytes[at] = tag;
  return putFixed64(bytes, at + 1, value, field);
}

export function writeSfixed64Field(
  bytes: Uint8Array,
  at: number,
  tag: number,
  value: bigint,
  field: string,
): number {
  bytes[at] = tag;
  return putSfixed64(bytes, at + 1, value, field);
}

export function writeFloatField(
  writer: Writer,
  at: number,
  tag: number,
  value: number,
  field: string,
): number {
  if (typeof value !== 'number') mismatch(field, value, 'a number');
  if (!(Math.abs(value) < floatLimit)) checkFloat(value, field);
  writer.bytes[at] = tag;
  writer.view.setFloat32(at + 1, value, true);
  return at + 5;
}

export function writeDoubleField(
  writer: Writer,
  at: number,
  tag: number,
  value: number,
  field: string,
): number {
  if (typeof value !== 'number') mismatch(field, value, 'a number');
  writer.bytes[at] = tag;
  writer.view.setFloat64(at + 1, value, true);
  return at + 9;
}

export function writeStringField(
  writer: Writer,
  at: number,
  tag: number,
  text: string,
  limit: number,
  field: string,
): number {
  const { bytes } = writer;
  bytes[at++] = tag;
  if (typeof text !== 'string' || text.length > textMax || at + prefixMax + 3 * text.length > limit)
    return writeLongString(writer, at, text, limit, field);
  // At three bytes per character at most, the text has fewer than 128 bytes, so its length takes one byte.
  const end = putText(bytes, at + 1, text);
  bytes[at] = end - at - 1;
  return end;
}

export function writeBytesField(
  writer: Writer,
  at: number,
  tag: number,
  value: Uint8Array,
  limit: number,
  field: string,
): number {
  writer.bytes[at] = tag;
  return writeBytes(writer, at + 1, value, limit, field);
}

export function writeBulkField(
  writer: Writer,
  at: number,
  tag: number,
  value: Uint8Array,
  limit: number,
  field: string,
  threshold: number,
): number {
  writer.bytes[at] = tag;
  return writeBulk(writer, at + 1, value, limit, field, threshold);
}

/** Writes tag and length of a message in [at + 2, end); `closeLength` writes the length alone. */
export function closeLengthField(writer: Writer, at: number, tag: number, held: number, end: number): number {
  const { bytes } = writer;
  bytes[at++] = tag;
  if (end - at > 128 || writer.held !== held) return closeWide(writer, at, held, end, 0);
  bytes[at] = end - at - 1;
  return end;
}

/** Does the same as `closeLengthField`, for a message type that has no out-of-line values. */
export function closeSolidField(bytes: Uint8Array, at: number, tag: number, end: number): number {
  bytes[at++] = tag;
  if (end - at > 128) return putLength(bytes, at, at + 1, end);
  bytes[at] = end - at - 1;
  return end;
}
