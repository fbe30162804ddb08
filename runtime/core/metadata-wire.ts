/**
 * The wire form of Metadata: [u8 key length][key][u16 LE value length][value], repeated
 * (docs/wire/frames.md). The submission path writes it, and receivers of frames read it. Received metadata is
 * checked as a whole before any part of it is used. A response has two kinds of entries: entries of the
 * header have a colon in front of the key, and all other entries belong to the trailer.
 */
import { Buffer } from 'node:buffer';
import { isUint8Array } from 'node:util/types';
import { plainBytes } from '../codec/memory/intrinsic.ts';
import { loopCharsMax, readText, writeShort, writeUtf8 } from '../codec/primitives/text.ts';
import { metadataBytes, metadataEntries } from '../limits.ts';
import {
  entriesNow,
  type Metadata,
  type MetadataEntries,
  type MetadataValue,
  metadataOf,
} from './metadata.ts';
import { keyAt, type MetadataKey } from './metadata-keys.ts';

const colon = 0x3a;

/** The metadata of a response. Header and trailer are undefined when they have no entry. */
export interface ResponseMetadata {
  readonly header: Metadata | undefined;
  readonly trailer: Metadata | undefined;
}

/** Bytes of an entry in addition to its key and its value. */
export const entryBytes = 3;

/** Maximum length of a key, which the length byte can express. */
const keyBytesMax = 255;

/**
 * Several wire forms share one buffer, because separate memory would cost a wire form more than all its
 * entries.
 */
const roomBytes = 4 * metadataBytes;
let room = new Uint8Array(0);
/**
 * Bytes of the buffer that are in use. The initial value means a full buffer, so that the first wire form
 * allocates one.
 */
let used = roomBytes;

/** Allocates a new buffer when the longest wire form does not fit into the current buffer. */
function openRoom(): void {
  if (roomBytes - used >= metadataBytes) return;
  room = Buffer.allocUnsafeSlow(roomBytes);
  used = 0;
}

/** Returns the part of the buffer from `used` to `end`. This part is not used again. */
function closeRoom(end: number): Uint8Array {
  const taken = new Uint8Array(room.buffer, used, end - used);
  used = end;
  return taken;
}

/** Up to this number of bytes, a loop copies faster than a call into V8. */
const shortBytes = 64;

function lengthFault(length: number): string {
  return length <= metadataBytes ? '' : `metadata of ${length} bytes, the limit is ${metadataBytes}`;
}

/**
 * Returns a copy of bytes [at, end), or a text that says that there are too many bytes. The caller must check
 * the copy, because another process could change the original after the check.
 */
export function copyMetadata(bytes: Uint8Array, at: number, end: number): Uint8Array | string {
  const length = end - at;
  const why = lengthFault(length);
  if (why !== '') return why;
  openRoom();
  if (length <= shortBytes) for (let i = 0; i < length; ++i) room[used + i] = bytes[at + i]!;
  else room.set(bytes.subarray(at, end), used);
  return closeRoom(used + length);
}

function tooLarge(): RangeError {
  return new RangeError(`metadata is larger than ${metadataBytes} bytes: send large values in the message`);
}

/**
 * Writes entries to the buffer from `at` on, and returns their end, which is at most `limit`. Each key gets
 * the prefix `mark`.
 */
function write({ keys, values }: MetadataEntries, mark: string, at: number, limit: number): number {
  for (let i = 0; i < keys.length; ++i) {
    const { bytes: key, name } = keys[i]!;
    const value = values[i]!;
    const keyLength = mark.length + key.length;
    if (keyLength > keyBytesMax)
      throw new RangeError(
        `metadata key ${name}: a header's has at most ${keyBytesMax - mark.length} characters`,
      );
    const valueAt = at + entryBytes + keyLength;
    // Text that surely fits is written without measuring it first, because measuring costs as much as
    // writing.
    const most = typeof value === 'string' ? value.length * 3 : value.length;
    const bytes = valueAt + most <= limit ? -1 : typeof value === 'string' ? Buffer.byteLength(value) : most;
    if (bytes >= 0 && valueAt + bytes > limit) throw tooLarge();
    room[at++] = keyLength;
    if (mark !== '') room[at++] = colon;
    for (let j = 0; j < key.length; ++j) room[at + j] = key[j]!;
    let end: number;
    if (typeof value !== 'string') {
      room.set(value, valueAt);
      end = valueAt + most;
    } else if (bytes < 0 && value.length <= loopCharsMax) end = writeShort(room, valueAt, value);
    else end = writeUtf8(room, valueAt, value);
    room[valueAt - 2] = (end - valueAt) & 0xff;
    room[valueAt - 1] = (end - valueAt) >> 8;
    at = end;
  }
  return at;
}

/**
 * Returns the same entries with byte arrays that have no overridden properties. A `length` getter of the
 * application may do anything. It may even make a call with metadata, and such a call must not happen while
 * the buffer is being written.
 */
function withPlainBytes(entries: MetadataEntries): MetadataEntries {
  const { keys, values } = entries;
  for (let i = 0; i < keys.length; ++i)
    if (keys[i]!.binary) return { keys, values: values.map((value, at) => plainValue(keys[at]!, value)) };
  return entries;
}

function plainValue({ name, binary }: MetadataKey, value: MetadataValue): MetadataValue {
  if (!binary) return value;
  // A proxy of a Uint8Array looks like a Uint8Array until its bytes are read.
  if (!isUint8Array(value)) throw new TypeError(`metadata ${name}: a -bin key takes a Uint8Array`);
  return plainBytes(value);
}

function encode(given: MetadataEntries, behind: MetadataEntries): Uint8Array {
  if (given.keys.length + behind.keys.length > metadataEntries)
    throw new RangeError(`metadata has more than ${metadataEntries} entries`);
  const header = withPlainBytes(given);
  const others = withPlainBytes(behind);
  openRoom();
  const limit = used + metadataBytes;
  return closeRoom(write(others, '', write(header, ':', used, limit), limit));
}

const nothing: MetadataEntries = { keys: [], values: [] };

/**
 * Returns the wire form of `metadata`. Throws a RangeError that names the limit when the wire form is larger
 * than 8 KiB or has more than 64 entries.
 */
export function encodeMetadata(metadata: Iterable<readonly [string, MetadataValue]>): Uint8Array {
  return encode(nothing, entriesNow(metadata));
}

/**
 * Returns header and trailer of a response in one wire form, or undefined when both are empty. Throws as
 * `encodeMetadata` does; the limits apply to header and trailer together.
 */
export function encodeResponseMetadata(
  header: Metadata | undefined,
  trailer: Metadata | undefined,
): Uint8Array | undefined {
  const hasHeader = header !== undefined && header.size > 0;
  const hasTrailer = trailer !== undefined && trailer.size > 0;
  if (!hasHeader && !hasTrailer) return undefined;
  return encode(hasHeader ? entriesNow(header) : nothing, hasTrailer ? entriesNow(trailer) : nothing);
}

/** Has a 1 for each byte that a key may contain. */
const keyByte = new Uint8Array(256);
for (const char of '0123456789abcdefghijklmnopqrstuvwxyz-_.') keyByte[char.charCodeAt(0)] = 1;

/**
 * Returns the reason why bytes [at, end) are not valid metadata, or an empty string when they are valid. Only
 * the metadata of a response may have entries of a header.
 */
export function metadataFault(bytes: Uint8Array, at: number, end: number, response = false): string {
  const why = lengthFault(end - at);
  if (why !== '') return why;
  let entries = 0;
  while (at < end) {
    if (++entries > metadataEntries) return `more than ${metadataEntries} metadata entries`;
    const keyLength = bytes[at++]!;
    if (keyLength === 0) return 'an empty metadata key';
    if (keyLength + 2 > end - at) return 'metadata cut off in a key';
    for (let i = response && keyLength > 1 && bytes[at] === colon ? 1 : 0; i < keyLength; ++i) {
      if (keyByte[bytes[at + i]!] === 0) return 'a metadata key with a character that is not allowed';
    }
    at += keyLength;
    const valueLength = bytes[at]! | (bytes[at + 1]! << 8);
    at += 2;
    if (valueLength > end - at) return 'metadata cut off in a value';
    at += valueLength;
  }
  return '';
}

/**
 * Decodes metadata from bytes that `metadataFault` has accepted. The values are copies. Text that is not
 * valid UTF-8 gets replacement characters.
 */
export function decodeMetadata(bytes: Uint8Array, at: number, end: number): Metadata {
  const keys: MetadataKey[] = [];
  const values: MetadataValue[] = [];
  while (at < end) {
    const keyEnd = at + 1 + bytes[at]!;
    const key = keyAt(bytes, at + 1, keyEnd);
    keys.push(key);
    at = valueEnd(bytes, keyEnd);
    values.push(readValue(key, bytes, keyEnd + 2, at));
  }
  return metadataOf({ keys, values });
}

/** Decodes header and trailer of a response from bytes that `metadataFault` has accepted. */
export function decodeResponseMetadata(bytes: Uint8Array, at: number, end: number): ResponseMetadata {
  const header = { keys: [] as MetadataKey[], values: [] as MetadataValue[] };
  const trailer = { keys: [] as MetadataKey[], values: [] as MetadataValue[] };
  while (at < end) {
    const keyEnd = at + 1 + bytes[at]!;
    const ofHeader = bytes[at + 1] === colon;
    const key = keyAt(bytes, at + (ofHeader ? 2 : 1), keyEnd);
    const { keys, values } = ofHeader ? header : trailer;
    keys.push(key);
    at = valueEnd(bytes, keyEnd);
    values.push(readValue(key, bytes, keyEnd + 2, at));
  }
  return {
    header: header.keys.length === 0 ? undefined : metadataOf(header),
    trailer: trailer.keys.length === 0 ? undefined : metadataOf(trailer),
  };
}

/**
 * Returns the position of the first value of `key` in bytes that `metadataFault` has accepted, or -1 when
 * they have none. The two bytes before it are its length.
 */
export function valueStart(bytes: Uint8Array, key: Uint8Array): number {
  for (let at = 0; at < bytes.length; ) {
    const keyEnd = at + 1 + bytes[at]!;
    if (keyEnd - at - 1 === key.length && isAt(bytes, at + 1, key)) return keyEnd + 2;
    at = valueEnd(bytes, keyEnd);
  }
  return -1;
}

function isAt(bytes: Uint8Array, at: number, key: Uint8Array): boolean {
  for (let i = 0; i < key.length; ++i) if (bytes[at + i] !== key[i]) return false;
  return true;
}

/** Returns the first value of `key` as a view, or undefined when the metadata has no such key. */
export function firstValue(bytes: Uint8Array, key: Uint8Array): Uint8Array | undefined {
  const start = valueStart(bytes, key);
  return start < 0 ? undefined : bytes.subarray(start, valueEnd(bytes, start - 2));
}

/** Returns the end of the value whose length is at `at`. */
function valueEnd(bytes: Uint8Array, at: number): number {
  return at + 2 + (bytes[at]! | (bytes[at + 1]! << 8));
}

function readValue({ binary }: MetadataKey, bytes: Uint8Array, at: number, end: number): MetadataValue {
  return binary ? bytes.slice(at, end) : readText(bytes, at, end);
}
