/**
 * Runs of numbers in one piece: a length and the values, without tags. One loop for each type: V8 keeps everything in registers there, which it cannot
 * where a generated function has a dozen of loops. Called by generated code for packed fields; the types that are missing here are written one by one.
 */
import { lengthBytes } from './bound.ts';
import { need, readEnd, readLength, wide } from './read.ts';
import { noRoom, type Sink } from './sink.ts';
import type { Source } from './source.ts';
import {
  putLength,
  varintSize,
  writeDouble,
  writeFloat,
  writeInt32,
  writeSint32,
  writeUint32,
  writeVarint,
} from './write.ts';

// The room for the length is a guess: one byte per value.

export function writePackedInt32(
  sink: Sink,
  at: number,
  list: readonly number[],
  limit: number,
  field: string,
): number {
  if (at + lengthBytes + 10 * list.length > limit) return noRoom(sink, at);
  const { bytes } = sink;
  const start = at + varintSize(list.length);
  let end = start;
  for (let i = 0; i < list.length; i++) end = writeInt32(bytes, end, list[i]!, field);
  return putLength(bytes, at, start, end);
}

export function writePackedUint32(
  sink: Sink,
  at: number,
  list: readonly number[],
  limit: number,
  field: string,
): number {
  if (at + lengthBytes + 5 * list.length > limit) return noRoom(sink, at);
  const { bytes } = sink;
  const start = at + varintSize(list.length);
  let end = start;
  for (let i = 0; i < list.length; i++) end = writeUint32(bytes, end, list[i]!, field);
  return putLength(bytes, at, start, end);
}

export function writePackedSint32(
  sink: Sink,
  at: number,
  list: readonly number[],
  limit: number,
  field: string,
): number {
  if (at + lengthBytes + 5 * list.length > limit) return noRoom(sink, at);
  const { bytes } = sink;
  const start = at + varintSize(list.length);
  let end = start;
  for (let i = 0; i < list.length; i++) end = writeSint32(bytes, end, list[i]!, field);
  return putLength(bytes, at, start, end);
}

export function writePackedFloat(
  sink: Sink,
  at: number,
  list: readonly number[],
  limit: number,
  field: string,
): number {
  if (at + lengthBytes + 4 * list.length > limit) return noRoom(sink, at);
  at = writeVarint(sink.bytes, at, 4 * list.length);
  for (let i = 0; i < list.length; i++) at = writeFloat(sink, at, list[i]!, field);
  return at;
}

export function writePackedDouble(
  sink: Sink,
  at: number,
  list: readonly number[],
  limit: number,
  field: string,
): number {
  if (at + lengthBytes + 8 * list.length > limit) return noRoom(sink, at);
  at = writeVarint(sink.bytes, at, 8 * list.length);
  for (let i = 0; i < list.length; i++) at = writeDouble(sink, at, list[i]!, field);
  return at;
}

/** int32, and enums. Leaves the position behind the run in `source.at`, as all of these do. */
export function readPackedInt32(source: Source, at: number, end: number, into: number[]): void {
  const stop = readLength(source, at, end);
  const { bytes } = source;
  at = source.at;
  while (at < stop) {
    const byte = bytes[at] as number;
    if (byte < 128) {
      into.push(byte);
      at++;
    } else {
      into.push(wide(source, at, stop));
      at = source.at;
    }
  }
  readEnd(source, at, stop);
  source.at = at;
}

export function readPackedUint32(source: Source, at: number, end: number, into: number[]): void {
  const stop = readLength(source, at, end);
  const { bytes } = source;
  at = source.at;
  while (at < stop) {
    const byte = bytes[at] as number;
    if (byte < 128) {
      into.push(byte);
      at++;
    } else {
      into.push(wide(source, at, stop) >>> 0);
      at = source.at;
    }
  }
  readEnd(source, at, stop);
  source.at = at;
}

export function readPackedSint32(source: Source, at: number, end: number, into: number[]): void {
  const stop = readLength(source, at, end);
  const { bytes } = source;
  at = source.at;
  while (at < stop) {
    let value = bytes[at] as number;
    if (value < 128) at++;
    else {
      value = wide(source, at, stop);
      at = source.at;
    }
    into.push((value >>> 1) ^ -(value & 1));
  }
  readEnd(source, at, stop);
  source.at = at;
}

export function readPackedFloat(source: Source, at: number, end: number, into: number[]): void {
  const stop = readLength(source, at, end);
  const { view } = source;
  for (at = source.at; at < stop; at += 4) {
    need(source, at, stop, 4);
    into.push(view.getFloat32(at, true));
  }
  source.at = stop;
}

export function readPackedDouble(source: Source, at: number, end: number, into: number[]): void {
  const stop = readLength(source, at, end);
  const { view } = source;
  for (at = source.at; at < stop; at += 8) {
    need(source, at, stop, 8);
    into.push(view.getFloat64(at, true));
  }
  source.at = stop;
}
