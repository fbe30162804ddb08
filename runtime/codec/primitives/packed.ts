/**
 * Writers of packed fields: a length and the values, without tags. Each type has a loop of its own, in which
 * V8 keeps everything in registers. A generated function with a dozen loops would not allow that. Only
 * generated code calls them, on the thread of the call, with lists that are not empty.
 */

import { mismatch } from '../error.ts';
import { checkFloat, floatRoundsAway } from '../float.ts';
import { noRoom, type Writer } from '../memory/writer.ts';
import { lowIndex, manyHalves, manySigned, manyUnsigned, splitSigned, splitUnsigned } from './int64.ts';
import { lengthBytes } from './room.ts';
import {
  putLength,
  varintSize,
  writeBool,
  writeFixed32,
  writeFixed64,
  writeSfixed32,
  writeSfixed64,
  writeVarint,
  writeVarint64,
} from './write.ts';

/** A local copy of floatRoundsAway, because V8 checks on each access whether an import is initialised. */
const floatLimit = floatRoundsAway;

/**
 * These are constants of this module, because V8 checks on each access whether an import is initialised and
 * whether it still is the same function.
 */
const prefixMax = lengthBytes;
const low = lowIndex;
const high = 1 - low;
const signed = manySigned;
const unsigned = manyUnsigned;
const halves = manyHalves;
const put = writeVarint;
const put64 = writeVarint64;
const sizeOf = varintSize;
const putBool = writeBool;
const putFixed32 = writeFixed32;
const putSfixed32 = writeSfixed32;
const putFixed64 = writeFixed64;
const putSfixed64 = writeSfixed64;

// Each writer reads the length of its list once. A getter or a Proxy of the application may change the length
// later, and the memory beyond `limit` belongs to other messages.

// Values in a list tend to have the same size, so the writer computes the room for the length as if all
// values were like the last value. If the length takes more or fewer bytes, the writer moves the values.

/** Returns the encoded size of the last value. A later check finds a value that is not a number. */
function lastSize(list: readonly number[], zigzag: boolean): number {
  const last = list[list.length - 1];
  if (typeof last !== 'number') return 1;
  if (zigzag) return sizeOf(((last << 1) ^ (last >> 31)) >>> 0);
  return last < 0 ? 10 : sizeOf(last);
}

/** Does the same as `lastSize` for 64 bits, accurate to a byte or two. */
function lastSize64(list: readonly bigint[], zigzag: boolean): number {
  const last = list[list.length - 1];
  if (typeof last !== 'bigint') return 1;
  signed[0] = last;
  const hi = halves[high] as number;
  const sign = zigzag ? hi >> 31 : 0;
  return hi === sign ? sizeOf(((halves[low] as number) ^ sign) >>> 0) : 4 + sizeOf((hi ^ sign) >>> 0);
}

export function writePackedInt32(
  writer: Writer,
  at: number,
  list: readonly number[],
  limit: number,
  field: string,
): number {
  const count = list.length;
  if (at + prefixMax + 10 * count > limit) return noRoom(writer, at);
  const { bytes } = writer;
  const start = at + sizeOf(count * lastSize(list, false));
  let end = start;
  for (let i = 0; i < count; i++) {
    const value = list[i] as number;
    if (typeof value !== 'number' || value !== (value | 0))
      mismatch(field, value, 'a whole number from -2^31 to 2^31 - 1');
    // A negative int32 is sign-extended to 64 bits.
    end = value < 0 ? put64(bytes, end, value, -1) : put(bytes, end, value);
  }
  return putLength(bytes, at, start, end);
}

export function writePackedUint32(
  writer: Writer,
  at: number,
  list: readonly number[],
  limit: number,
  field: string,
): number {
  const count = list.length;
  if (at + prefixMax + 5 * count > limit) return noRoom(writer, at);
  const { bytes } = writer;
  const start = at + sizeOf(count * lastSize(list, false));
  let end = start;
  for (let i = 0; i < count; i++) {
    const value = list[i] as number;
    if (typeof value !== 'number' || value !== value >>> 0)
      mismatch(field, value, 'a whole number from 0 to 2^32 - 1');
    end = put(bytes, end, value);
  }
  return putLength(bytes, at, start, end);
}

export function writePackedSint32(
  writer: Writer,
  at: number,
  list: readonly number[],
  limit: number,
  field: string,
): number {
  const count = list.length;
  if (at + prefixMax + 5 * count > limit) return noRoom(writer, at);
  const { bytes } = writer;
  const start = at + sizeOf(count * lastSize(list, true));
  let end = start;
  for (let i = 0; i < count; i++) {
    const value = list[i] as number;
    if (typeof value !== 'number' || value !== (value | 0))
      mismatch(field, value, 'a whole number from -2^31 to 2^31 - 1');
    end = put(bytes, end, (value << 1) ^ (value >> 31));
  }
  return putLength(bytes, at, start, end);
}

export function writePackedInt64(
  writer: Writer,
  at: number,
  list: readonly bigint[],
  limit: number,
  field: string,
): number {
  const count = list.length;
  if (at + prefixMax + 10 * count > limit) return noRoom(writer, at);
  const { bytes } = writer;
  const start = at + sizeOf(count * lastSize64(list, false));
  let end = start;
  for (let i = 0; i < count; i++) {
    const value = list[i] as bigint;
    if (typeof value !== 'bigint' || BigInt.asIntN(64, value) !== value) splitSigned(value, field);
    signed[0] = value;
    const lo = halves[low] as number;
    const hi = halves[high] as number;
    end = put64(bytes, end, lo, hi);
  }
  return putLength(bytes, at, start, end);
}

export function writePackedUint64(
  writer: Writer,
  at: number,
  list: readonly bigint[],
  limit: number,
  field: string,
): number {
  const count = list.length;
  if (at + prefixMax + 10 * count > limit) return noRoom(writer, at);
  const { bytes } = writer;
  const start = at + sizeOf(count * lastSize64(list, false));
  let end = start;
  for (let i = 0; i < count; i++) {
    const value = list[i] as bigint;
    if (typeof value !== 'bigint' || BigInt.asUintN(64, value) !== value) splitUnsigned(value, field);
    unsigned[0] = value;
    const lo = halves[low] as number;
    const hi = halves[high] as number;
    end = put64(bytes, end, lo, hi);
  }
  return putLength(bytes, at, start, end);
}

export function writePackedSint64(
  writer: Writer,
  at: number,
  list: readonly bigint[],
  limit: number,
  field: string,
): number {
  const count = list.length;
  if (at + prefixMax + 10 * count > limit) return noRoom(writer, at);
  const { bytes } = writer;
  const start = at + sizeOf(count * lastSize64(list, true));
  let end = start;
  for (let i = 0; i < count; i++) {
    const value = list[i] as bigint;
    if (typeof value !== 'bigint' || BigInt.asIntN(64, value) !== value) splitSigned(value, field);
    signed[0] = value;
    const lo = halves[low] as number;
    const hi = halves[high] as number;
    const sign = hi >> 31;
    end = put64(bytes, end, (lo << 1) ^ sign, ((hi << 1) | (lo >>> 31)) ^ sign);
  }
  return putLength(bytes, at, start, end);
}

export function writePackedBool(
  writer: Writer,
  at: number,
  list: readonly boolean[],
  limit: number,
  field: string,
): number {
  const count = list.length;
  if (at + prefixMax + count > limit) return noRoom(writer, at);
  const { bytes } = writer;
  at = put(bytes, at, count);
  for (let i = 0; i < count; i++) at = putBool(bytes, at, list[i] as boolean, field);
  return at;
}

export function writePackedFixed32(
  writer: Writer,
  at: number,
  list: readonly number[],
  limit: number,
  field: string,
): number {
  const count = list.length;
  if (at + prefixMax + 4 * count > limit) return noRoom(writer, at);
  const { bytes } = writer;
  at = put(bytes, at, 4 * count);
  for (let i = 0; i < count; i++) at = putFixed32(bytes, at, list[i] as number, field);
  return at;
}

export function writePackedSfixed32(
  writer: Writer,
  at: number,
  list: readonly number[],
  limit: number,
  field: string,
): number {
  const count = list.length;
  if (at + prefixMax + 4 * count > limit) return noRoom(writer, at);
  const { bytes } = writer;
  at = put(bytes, at, 4 * count);
  for (let i = 0; i < count; i++) at = putSfixed32(bytes, at, list[i] as number, field);
  return at;
}

export function writePackedFixed64(
  writer: Writer,
  at: number,
  list: readonly bigint[],
  limit: number,
  field: string,
): number {
  const count = list.length;
  if (at + prefixMax + 8 * count > limit) return noRoom(writer, at);
  const { bytes } = writer;
  at = put(bytes, at, 8 * count);
  for (let i = 0; i < count; i++) at = putFixed64(bytes, at, list[i] as bigint, field);
  return at;
}

export function writePackedSfixed64(
  writer: Writer,
  at: number,
  list: readonly bigint[],
  limit: number,
  field: string,
): number {
  const count = list.length;
  if (at + prefixMax + 8 * count > limit) return noRoom(writer, at);
  const { bytes } = writer;
  at = put(bytes, at, 8 * count);
  for (let i = 0; i < count; i++) at = putSfixed64(bytes, at, list[i] as bigint, field);
  return at;
}

export function writePackedFloat(
  writer: Writer,
  at: number,
  list: readonly number[],
  limit: number,
  field: string,
): number {
  const count = list.length;
  if (at + prefixMax + 4 * count > limit) return noRoom(writer, at);
  const { view } = writer;
  at = put(writer.bytes, at, 4 * count);
  for (let i = 0; i < count; i++) {
    const value = list[i] as number;
    if (typeof value !== 'number') mismatch(field, value, 'a number');
    if (!(Math.abs(value) < floatLimit)) checkFloat(value, field);
    view.setFloat32(at, value, true);
    at += 4;
  }
  return at;
}

export function writePackedDouble(
  writer: Writer,
  at: number,
  list: readonly number[],
  limit: number,
  field: string,
): number {
  const count = list.length;
  if (at + prefixMax + 8 * count > limit) return noRoom(writer, at);
  const { view } = writer;
  at = put(writer.bytes, at, 8 * count);
  for (let i = 0; i < count; i++) {
    const value = list[i] as number;
    if (typeof value !== 'number') mismatch(field, value, 'a number');
    view.setFloat64(at, value, true);
    at += 8;
  }
  return at;
}
