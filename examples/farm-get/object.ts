/**
 * The layout of an object that other hosts READ while it is written, as in FaRM (NSDI 2014). Each cache line
 * of 64 bytes begins with the object's version. A writer makes the versions of all lines odd, then writes the
 * content, then gives all lines the next even version. A NIC reads memory line by line. If all lines of a
 * READ have the same even version, the READ has seen no part of a write.
 *
 * Software devices copy with the CPU, which does not read a line at once. Therefore the content also has a
 * checksum, as in Pilaf (ATC 2013). One torn object in 2^32 would pass as whole.
 */
import { crc32 } from 'node:zlib';

export const lineBytes = 64;
const versionBytes = 4;
const contentEach = lineBytes - versionBytes;
export const keyMax = 16;
/** Number of bytes in front of the value, for the checksum, the length and the key. */
const headBytes = 4 + 4 + keyMax;

const linesOf = (contentBytes: number): number => Math.ceil(contentBytes / contentEach);

/** Returns the number of bytes of an object whose value may have `valueMax` bytes. */
export const objectBytes = (valueMax: number): number => linesOf(headBytes + valueMax) * lineBytes;

/** Returns the versions of an object's lines. `object` begins on a cache line. */
function versions(object: Uint8Array): Uint32Array {
  return new Uint32Array(object.buffer, object.byteOffset, object.byteLength / 4);
}
const perLine = lineBytes / 4;

export function encodedKey(key: string): Uint8Array {
  const bytes = Buffer.from(key);
  if (bytes.byteLength < 1 || bytes.byteLength > keyMax)
    throw new RangeError(`a key has 1 to ${keyMax} bytes, and '${key}' has ${bytes.byteLength}`);
  const padded = new Uint8Array(keyMax);
  padded.set(bytes);
  return padded;
}

/**
 * Returns the checksum of the parts that a READ must see together: the value and its key under this version.
 */
function checksum(version: number, content: Uint8Array): number {
  return crc32(content.subarray(4), version);
}

/**
 * Writes an object, and stops after each step so that a test can READ between two steps. A server takes all
 * steps at once. Only one writer may write at a time. The version is odd while it writes.
 */
export function* writeObject(object: Uint8Array, key: Uint8Array, value: Uint8Array): Generator<void> {
  const words = versions(object);
  const version = Atomics.load(words, 0);
  if (version % 2 === 1) throw new Error('the object is being written');
  const next = (version + 2) % 2 ** 32;
  const content = new Uint8Array(headBytes + value.byteLength);
  const view = new DataView(content.buffer);
  view.setUint32(4, value.byteLength);
  content.set(key, 8);
  content.set(value, headBytes);
  view.setUint32(0, checksum(next, content));
  // The device reads memory, not the values that the compiler or the CPU holds back. Stores by Atomics reach
  // memory in this order.
  for (let i = 0; i < words.length; i += perLine) {
    Atomics.store(words, i, version + 1);
    yield;
  }
  for (let line = 0; line < linesOf(content.byteLength); ++line) {
    const part = content.subarray(line * contentEach, (line + 1) * contentEach);
    object.set(part, line * lineBytes + versionBytes);
    yield;
  }
  for (let i = 0; i < words.length; i += perLine) {
    Atomics.store(words, i, next);
    yield;
  }
}

export type Seen = 'empty' | 'torn' | { readonly key: Uint8Array; readonly value: Uint8Array };

/**
 * Checks a copy that a READ has brought. With `linesAreWhole`, the device reads each cache line at once, so
 * the versions suffice.
 */
export function readObject(copy: Uint8Array, linesAreWhole: boolean): Seen {
  const words = versions(copy);
  const version = words[0]!;
  for (let i = 0; i < words.length; i += perLine)
    if (words[i] !== version || version % 2 === 1) return 'torn';
  if (version === 0) return 'empty';
  const content = new Uint8Array(linesOf(copy.byteLength) * contentEach);
  for (let line = 0; line * lineBytes < copy.byteLength; ++line) {
    const from = line * lineBytes;
    content.set(copy.subarray(from + versionBytes, from + lineBytes), line * contentEach);
  }
  const view = new DataView(content.buffer);
  const length = view.getUint32(4);
  if (length > content.byteLength - headBytes) return 'torn';
  const whole = content.subarray(0, headBytes + length);
  if (!linesAreWhole && checksum(version, whole) !== view.getUint32(0)) return 'torn';
  return { key: content.subarray(8, headBytes), value: whole.subarray(headBytes) };
}
