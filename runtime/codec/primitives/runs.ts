/**
 * Readers of packed fields: a length and the values, without tags. Each reader takes the existing list and
 * returns a list that also holds the new values, so that a new list can be created at its final length
 * instead of growing. Like all readers they leave the position behind the field in `source.at`. Only
 * generated code calls them, on the thread of the call.
 */

import type { Source } from '../memory/source.ts';
import { lowIndex, manyHalves, manySigned, manyUnsigned, manyValues } from './int64.ts';
import { need, readLength, wide, wideHigh } from './read.ts';

/** These are constants of this module, because V8 checks on each access whether an import is initialised. */
const low = lowIndex;
const high = 1 - low;
const signed = manySigned;
const unsigned = manyUnsigned;
const halves = manyHalves;
const readWide = wide;
const highOfWide = wideHigh;

/** Number of values collected before they are moved to a list. */
const chunk = manyValues;
/**
 * For at least this number of values, copying the collected array is faster than appending one value after
 * another.
 */
const copiedMin = 8;

/**
 * The collected values, as signed 32-bit integers or as doubles. Integers and doubles have separate arrays,
 * because V8 stores them in different forms, and a copy of an array keeps the form of the original.
 */
const ints: number[] = [0];
const reals: number[] = [0.5];

/** Returns the list with the first `count` collected values added. */
function joined(into: number[], from: readonly number[], count: number): number[] {
  if (into.length === 0 && count >= copiedMin) return from.slice(0, count);
  for (let i = 0; i < count; i++) into.push(from[i] as number);
  return into;
}

/** Does the same as `joined`, for unsigned values. Few of the values need the 32nd bit. */
function joinedUnsigned(into: number[], count: number): number[] {
  let all = 0;
  for (let i = 0; i < count; i++) all |= ints[i] as number;
  if (all >= 0) return joined(into, ints, count);
  for (let i = 0; i < count; i++) into.push((ints[i] as number) >>> 0);
  return into;
}

/** Collects the low halves of varints and returns their number. */
function collectInts(source: Source, at: number, stop: number, zigzag: boolean): number {
  const { bytes } = source;
  const near = stop - 2;
  let count = 0;
  while (at < stop && count < chunk) {
    // This is a fast path for values of up to three bytes, which nearly all values are. The reader of longer
    // values is kept out of this loop, so that V8 has registers for it.
    while (at < near && count < chunk) {
      let value = bytes[at] as number;
      if (value < 128) at++;
      else {
        const second = bytes[at + 1] as number;
        if (second < 128) {
          value = (value & 127) | (second << 7);
          at += 2;
        } else {
          const third = bytes[at + 2] as number;
          if (third > 127) break;
          value = (value & 127) | ((second & 127) << 7) | (third << 14);
          at += 3;
        }
      }
      ints[count++] = zigzag ? (value >>> 1) ^ -(value & 1) : value;
    }
    if (at < stop && count < chunk) {
      const value = readWide(source, at, stop);
      at = source.at;
      ints[count++] = zigzag ? (value >>> 1) ^ -(value & 1) : value;
    }
  }
  source.at = at;
  return count;
}

/**
 * Collects 64-bit varints as halves and returns their number. The inner loop reads up to six bytes, which
 * suffices for milliseconds since 1970.
 */
function collectHalves(source: Source, at: number, stop: number): number {
  const { bytes } = source;
  const near = stop - 5;
  let count = 0;
  while (at < stop && count < chunk) {
    while (at < near && count < chunk) {
      let byte = bytes[at] as number;
      let lo = byte & 127;
      let hi = 0;
      let size = 1;
      if (byte > 127) {
        byte = bytes[at + 1] as number;
        lo |= (byte & 127) << 7;
        size = 2;
        if (byte > 127) {
          byte = bytes[at + 2] as number;
          lo |= (byte & 127) << 14;
          size = 3;
          if (byte > 127) {
            byte = bytes[at + 3] as number;
            lo |= (byte & 127) << 21;
            size = 4;
            if (byte > 127) {
              byte = bytes[at + 4] as number;
              lo |= byte << 28;
              hi = (byte & 127) >>> 4;
              size = 5;
              if (byte > 127) {
                byte = bytes[at + 5] as number;
                if (byte > 127) break;
                hi |= byte << 3;
                size = 6;
              }
            }
          }
        }
      }
      at += size;
      halves[2 * count + low] = lo;
      halves[2 * count + high] = hi;
      count++;
    }
    if (at < stop && count < chunk) {
      halves[2 * count + low] = readWide(source, at, stop);
      halves[2 * count + high] = highOfWide();
      at = source.at;
      count++;
    }
  }
  source.at = at;
  return count;
}

/**
 * Returns the number of values of `size` bytes to collect next. Throws when only a part of a value is left.
 */
function sized(source: Source, at: number, stop: number, size: number): number {
  if (stop - at >= chunk * size) return chunk;
  const count = Math.floor((stop - at) / size);
  if (count === 0) need(source, at, stop, size);
  return count;
}

/** Reads int32 and enum values. */
export function readRunInt32(source: Source, at: number, end: number, into: number[]): number[] {
  const stop = readLength(source, at, end);
  while (source.at < stop) into = joined(into, ints, collectInts(source, source.at, stop, false));
  return into;
}

export function readRunUint32(source: Source, at: number, end: number, into: number[]): number[] {
  const stop = readLength(source, at, end);
  while (source.at < stop) into = joinedUnsigned(into, collectInts(source, source.at, stop, false));
  return into;
}

export function readRunSint32(source: Source, at: number, end: number, into: number[]): number[] {
  const stop = readLength(source, at, end);
  while (source.at < stop) into = joined(into, ints, collectInts(source, source.at, stop, true));
  return into;
}

export function readRunBool(source: Source, at: number, end: number, into: boolean[]): boolean[] {
  const stop = readLength(source, at, end);
  while (source.at < stop) {
    const count = collectHalves(source, source.at, stop);
    for (let i = 0; i < count; i++)
      into.push(((halves[2 * i] as number) | (halves[2 * i + 1] as number)) !== 0);
  }
  return into;
}

export function readRunInt64(source: Source, at: number, end: number, into: bigint[]): bigint[] {
  const stop = readLength(source, at, end);
  while (source.at < stop) {
    const count = collectHalves(source, source.at, stop);
    for (let i = 0; i < count; i++) into.push(signed[i] as bigint);
  }
  return into;
}

export function readRunUint64(source: Source, at: number, end: number, into: bigint[]): bigint[] {
  const stop = readLength(source, at, end);
  while (source.at < stop) {
    const count = collectHalves(source, source.at, stop);
    for (let i = 0; i < count; i++) into.push(unsigned[i] as bigint);
  }
  return into;
}

export function readRunSint64(source: Source, at: number, end: number, into: bigint[]): bigint[] {
  const stop = readLength(source, at, end);
  while (source.at < stop) {
    const count = collectHalves(source, source.at, stop);
    for (let i = 0; i < 2 * count; i += 2) {
      const lo = halves[i + low] as number;
      const hi = halves[i + high] as number;
      const sign = -(lo & 1);
      halves[i + low] = ((lo >>> 1) | (hi << 31)) ^ sign;
      halves[i + high] = (hi >>> 1) ^ sign;
    }
    for (let i = 0; i < count; i++) into.push(signed[i] as bigint);
  }
  return into;
}

export function readRunFixed32(source: Source, at: number, end: number, into: number[]): number[] {
  const stop = readLength(source, at, end);
  const { view } = source;
  for (at = source.at; at < stop; ) {
    const count = sized(source, at, stop, 4);
    for (let i = 0; i < count; i++, at += 4) ints[i] = view.getInt32(at, true);
    into = joinedUnsigned(into, count);
  }
  source.at = at;
  return into;
}

export function readRunSfixed32(source: Source, at: number, end: number, into: number[]): number[] {
  const stop = readLength(source, at, end);
  const { view } = source;
  for (at = source.at; at < stop; ) {
    const count = sized(source, at, stop, 4);
    for (let i = 0; i < count; i++, at += 4) ints[i] = view.getInt32(at, true);
    into = joined(into, ints, count);
  }
  source.at = at;
  return into;
}

export function readRunFloat(source: Source, at: number, end: number, into: number[]): number[] {
  const stop = readLength(source, at, end);
  const { view } = source;
  for (at = source.at; at < stop; ) {
    const count = sized(source, at, stop, 4);
    for (let i = 0; i < count; i++, at += 4) reals[i] = view.getFloat32(at, true);
    into = joined(into, reals, count);
  }
  source.at = at;
  return into;
}

export function readRunDouble(source: Source, at: number, end: number, into: number[]): number[] {
  const stop = readLength(source, at, end);
  const { view } = source;
  for (at = source.at; at < stop; ) {
    const count = sized(source, at, stop, 8);
    for (let i = 0; i < count; i++, at += 8) reals[i] = view.getFloat64(at, true);
    into = joined(into, reals, count);
  }
  source.at = at;
  return into;
}

export function readRunFixed64(source: Source, at: number, end: number, into: bigint[]): bigint[] {
  const stop = readLength(source, at, end);
  const { view } = source;
  for (at = source.at; at < stop; at += 8) {
    need(source, at, stop, 8);
    into.push(view.getBigUint64(at, true));
  }
  source.at = stop;
  return into;
}

export function readRunSfixed64(source: Source, at: number, end: number, into: bigint[]): bigint[] {
  const stop = readLength(source, at, end);
  const { view } = source;
  for (at = source.at; at < stop; at += 8) {
    need(source, at, stop, 8);
    into.push(view.getBigInt64(at, true));
  }
  source.at = stop;
  return into;
}
