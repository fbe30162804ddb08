/**
 * Primitives of generated decoders. Each primitive reads at `at`, returns the value and leaves the position
 * behind the value in `source.at`. A read past `end` is always noticed: either the primitive fails, or it
 * leaves a position behind `end`, which the decoder's loop refuses (`readEnd`). Only generated code calls
 * them, on the thread of the call.
 */

import { nestingMax, varintBytesMax } from '../limits.ts';
import type { Source } from '../memory/source.ts';
import { joinSigned, joinUnsigned, joinZigzag } from './int64.ts';
import { numberOfBigint } from './jstype.ts';
import { readUtf8 } from './text.ts';

/** High half of the varint that `wide` has read last. */
let high = 0;

/**
 * Reads a varint of any length: returns the low half as int32 and leaves the high half in `high`. The readers
 * of packed fields also call it; applications do not.
 */
export function wide(source: Source, at: number, end: number): number {
  if (end - at < varintBytesMax) return wideAtEnd(source, at, end);
  const bytes = source.bytes;
  let byte = bytes[at] as number;
  let lo = byte & 127;
  high = 0;
  if (byte > 127) {
    byte = bytes[++at] as number;
    lo |= (byte & 127) << 7;
    if (byte > 127) {
      byte = bytes[++at] as number;
      lo |= (byte & 127) << 14;
      if (byte > 127) {
        byte = bytes[++at] as number;
        lo |= (byte & 127) << 21;
        if (byte > 127) return wider(source, at + 1, lo);
      }
    }
  }
  source.at = at + 1;
  return lo;
}

/** High half of the varint that `wide` has just read, as int32. */
export function wideHigh(): number {
  return high;
}

/** Continues with the fifth byte, whose bits belong to both halves. */
function wider(source: Source, at: number, lo: number): number {
  const bytes = source.bytes;
  let byte = bytes[at++] as number;
  lo |= (byte & 127) << 28;
  let hi = (byte & 127) >>> 4;
  for (let shift = 3; byte > 127; shift += 7) {
    if (shift > 31) return tooWide(source, at);
    byte = bytes[at++] as number;
    hi |= (byte & 127) << shift;
  }
  source.at = at;
  high = hi;
  return lo;
}

function tooWide(source: Source, at: number): never {
  return source.fail(at, `a varint has more than ${varintBytesMax} bytes`);
}

/** Reads a varint that may extend past the end of the message. */
function wideAtEnd(source: Source, at: number, end: number): number {
  const bytes = source.bytes;
  let lo = 0;
  high = 0;
  for (let shift = 0; at < end && shift < 28; shift += 7) {
    const byte = bytes[at++] as number;
    lo |= (byte & 127) << shift;
    if (byte < 128) {
      source.at = at;
      return lo;
    }
  }
  for (let last = at; last < end; last++) if ((bytes[last] as number) < 128) return wider(source, at, lo);
  return source.fail(end, 'truncated: the message ends inside a varint');
}

/** Checks the nesting depth on entry to a message. */
export function readMessage(source: Source, at: number, depth: number, typeName: string): void {
  if (depth === 0) {
    source.origin = at;
    source.typeName = typeName;
  } else if (depth > nestingMax) source.fail(at, `messages are nested more than ${nestingMax} deep`);
}

/** Checks that the last value of a message ends exactly at the end of the message. */
export function readEnd(source: Source, at: number, end: number): void {
  if (at !== end) source.fail(end, 'truncated: a field runs past the end of its message');
}

/** Reads the field number and wire type, unsigned. */
export function readTag(source: Source, at: number, end: number): number {
  const byte = source.bytes[at] as number;
  if (byte < 128) {
    source.at = at + 1;
    return byte;
  }
  const lo = wide(source, at, end);
  if (high !== 0 || source.at - at > 5) source.fail(at, 'a tag is wider than 32 bits');
  return lo >>> 0;
}

/** Reads a length prefix and returns the end of the content. The content starts at `source.at`. */
export function readLength(source: Source, at: number, end: number): number {
  let length = source.bytes[at] as number;
  if (length < 128) source.at = at + 1;
  else {
    length = wide(source, at, end) >>> 0;
    if (high !== 0) source.fail(at, 'a length is wider than 32 bits');
  }
  if (!(length <= end - source.at))
    source.fail(at, `truncated: a length of ${length} runs past the end of its message`);
  return source.at + length;
}

/**
 * Reads a length prefix and returns the start of the content. Its end is in `source.stop` until the next
 * call.
 */
export function readStart(source: Source, at: number, end: number): number {
  source.stop = readLength(source, at, end);
  return source.at;
}

export function readInt32(source: Source, at: number, end: number): number {
  const byte = source.bytes[at] as number;
  if (byte < 128) {
    source.at = at + 1;
    return byte;
  }
  return wide(source, at, end);
}

export function readUint32(source: Source, at: number, end: number): number {
  return readInt32(source, at, end) >>> 0;
}

export function readSint32(source: Source, at: number, end: number): number {
  const value = readInt32(source, at, end);
  return (value >>> 1) ^ -(value & 1);
}

export function readBool(source: Source, at: number, end: number): boolean {
  const byte = source.bytes[at] as number;
  if (byte < 128) {
    source.at = at + 1;
    return byte !== 0;
  }
  return (wide(source, at, end) | high) !== 0;
}

export function readInt64(source: Source, at: number, end: number): bigint {
  const byte = source.bytes[at] as number;
  if (byte < 128) {
    source.at = at + 1;
    return joinSigned(byte, 0);
  }
  return joinSigned(wide(source, at, end), high);
}

export function readUint64(source: Source, at: number, end: number): bigint {
  const byte = source.bytes[at] as number;
  if (byte < 128) {
    source.at = at + 1;
    return joinUnsigned(byte, 0);
  }
  return joinUnsigned(wide(source, at, end), high);
}

/**
 * Reads an int64 as a number, and creates no bigint for values of 32 bits. The error names `field` when a
 * number cannot hold the value.
 */
export function readInt64Number(source: Source, at: number, end: number, field: string): number {
  const byte = source.bytes[at] as number;
  if (byte < 128) {
    source.at = at + 1;
    return byte;
  }
  const lo = wide(source, at, end);
  return high === 0 ? lo >>> 0 : numberOfBigint(source, joinSigned(lo, high), field);
}

export function readUint64Number(source: Source, at: number, end: number, field: string): number {
  const byte = source.bytes[at] as number;
  if (byte < 128) {
    source.at = at + 1;
    return byte;
  }
  const lo = wide(source, at, end);
  return high === 0 ? lo >>> 0 : numberOfBigint(source, joinUnsigned(lo, high), field);
}

export function readSint64(source: Source, at: number, end: number): bigint {
  return joinZigzag(wide(source, at, end), high);
}

/**
 * Throws for a fixed-width value that is cut off. Otherwise it leaves the position behind the value in
 * `source.at`.
 */
export function need(source: Source, at: number, end: number, bytes: number): void {
  if (end - at < bytes) source.fail(at, 'truncated: the message ends inside a fixed-width field');
  source.at = at + bytes;
}

export function readFixed32(source: Source, at: number, end: number): number {
  need(source, at, end, 4);
  return source.view.getUint32(at, true);
}

export function readSfixed32(source: Source, at: number, end: number): number {
  need(source, at, end, 4);
  return source.view.getInt32(at, true);
}

export function readFixed64(source: Source, at: number, end: number): bigint {
  need(source, at, end, 8);
  return source.view.getBigUint64(at, true);
}

export function readSfixed64(source: Source, at: number, end: number): bigint {
  need(source, at, end, 8);
  return source.view.getBigInt64(at, true);
}

export function readFloat(source: Source, at: number, end: number): number {
  need(source, at, end, 4);
  return source.view.getFloat32(at, true);
}

export function readDouble(source: Source, at: number, end: number): number {
  need(source, at, end, 8);
  return source.view.getFloat64(at, true);
}

export function readString(source: Source, at: number, end: number): string {
  const stop = readLength(source, at, end);
  const text = readUtf8(source, source.at, stop);
  source.at = stop;
  return text;
}

/**
 * Returns a copy of the value, or a view of the memory when the value has `source.leaseBytes` bytes or more.
 */
export function readBytes(source: Source, at: number, end: number): Uint8Array {
  const stop = readLength(source, at, end);
  const start = source.at;
  source.at = stop;
  return source.value(start, stop);
}

/**
 * Skips a field that is unknown, or that is known with another wire type. Returns the position behind the
 * field, which is also in `source.at`.
 */
export function skipField(source: Source, tag: number, at: number, end: number, depth: number): number {
  const number = tag >>> 3;
  if (number === 0) source.fail(at, 'field number 0');
  switch (tag & 7) {
    case 0:
      wide(source, at, end);
      break;
    case 1:
      need(source, at, end, 8);
      break;
    case 2:
      at = readLength(source, at, end);
      if (at >= source.gapAt) source.cross(source.at, at);
      source.at = at;
      break;
    case 3:
      skipGroup(source, number, at, end, depth + 1);
      break;
    case 5:
      need(source, at, end, 4);
      break;
    case 4:
      return source.fail(at, `a group of field ${number} ends that never began`);
    default:
      return source.fail(at, `wire type ${tag & 7} of field ${number} does not exist`);
  }
  return source.at;
}

/**
 * Current encoders write no groups, but a decoder has to find the end of a group. Groups nest like messages.
 */
function skipGroup(source: Source, group: number, at: number, end: number, depth: number): void {
  if (depth > nestingMax) source.fail(at, `groups are nested more than ${nestingMax} deep`);
  while (at < end) {
    const tag = readTag(source, at, end);
    at = source.at;
    if ((tag & 7) === 4) {
      if (tag >>> 3 !== group) source.fail(at, `the group of field ${group} is closed by field ${tag >>> 3}`);
      return;
    }
    at = skipField(source, tag, at, end, depth);
  }
  source.fail(at, `truncated: the group of field ${group} has no end`);
}
