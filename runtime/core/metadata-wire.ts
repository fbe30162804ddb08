/**
 * The wire form of Metadata: [u8 key length][key][u16 LE value length][value], repeated (docs/WIRE.md). Written by the
 * submission path, read on arrival; what arrives is checked as a whole before any of it is used. A response has two kinds of
 * entries: those of the header have a colon in front of their keys, the others belong to the trailer.
 */
import { Buffer } from 'node:buffer';
import { lengthOf } from '../codec/memory/intrinsic.ts';
import { metadataBytes, metadataEntries } from '../limits.ts';
import { Metadata, type MetadataValue } from './metadata.ts';

const colon = 0x3a;
const dash = 0x2d;
const dot = 0x2e;
const underscore = 0x5f;

/** What a response brings beside its message; undefined for what has no entry. */
export interface ResponseMetadata {
  readonly header: Metadata | undefined;
  readonly trailer: Metadata | undefined;
}

/** What an entry takes beside its key and its value. */
export const entryBytes = 3;

/** Where entries are put one behind the other before their sum is known. */
const layout = Buffer.allocUnsafeSlow(metadataBytes);

/** The wire form in memory of its own. Throws a RangeError that names the limit when it is larger than 8 KiB, or more than 64 entries. */
export function encodeMetadata(metadata: Iterable<readonly [string, MetadataValue]>): Uint8Array {
  let at = 0;
  let entries = 0;
  // As a list first: what gives the entries may be a subclass, and do anything meanwhile.
  for (const [key, value] of [...metadata]) {
    if (++entries > metadataEntries)
      throw new RangeError(`metadata has more than ${metadataEntries} entries`);
    const valueAt = at + entryBytes + key.length;
    const bytes = typeof value === 'string' ? Buffer.byteLength(value) : lengthOf(value);
    if (valueAt + bytes > metadataBytes) {
      throw new RangeError(
        `metadata is larger than ${metadataBytes} bytes: send large values in the message`,
      );
    }
    layout[at] = key.length;
    layout.write(key, at + 1, 'latin1');
    layout.writeUInt16LE(bytes, valueAt - 2);
    if (typeof value === 'string') layout.write(value, valueAt, bytes, 'utf8');
    else layout.set(value, valueAt);
    at = valueAt + bytes;
  }
  return Buffer.from(layout.subarray(0, at));
}

function* marked(header: Metadata): Iterable<[string, MetadataValue]> {
  for (const [key, value] of header) yield [`:${key}`, value];
}

/** Header and trailer of a response in one, undefined when there is no entry. Throws as `encodeMetadata` does: they share the limits. */
export function encodeResponseMetadata(
  header: Metadata | undefined,
  trailer: Metadata | undefined,
): Uint8Array | undefined {
  if (header === undefined || header.size === 0) {
    return trailer === undefined || trailer.size === 0 ? undefined : encodeMetadata(trailer);
  }
  return encodeMetadata([...marked(header), ...(trailer ?? [])]);
}

function keyByte(byte: number): boolean {
  return (
    (byte >= 0x61 && byte <= 0x7a) ||
    (byte >= 0x30 && byte <= 0x39) ||
    byte === dash ||
    byte === underscore ||
    byte === dot
  );
}

/** Why bytes [at, end) are no valid metadata, or an empty string. Only a response may have entries of a header. */
export function metadataFault(bytes: Uint8Array, at: number, end: number, response = false): string {
  if (end - at > metadataBytes) return `metadata of ${end - at} bytes, the limit is ${metadataBytes}`;
  let entries = 0;
  while (at < end) {
    if (++entries > metadataEntries) return `more than ${metadataEntries} metadata entries`;
    const keyLength = bytes[at++]!;
    if (keyLength === 0) return 'an empty metadata key';
    if (keyLength + 2 > end - at) return 'metadata cut off in a key';
    for (let i = response && keyLength > 1 && bytes[at] === colon ? 1 : 0; i < keyLength; ++i) {
      if (!keyByte(bytes[at + i]!)) return 'a metadata key with a character that is not allowed';
    }
    at += keyLength;
    const valueLength = bytes[at]! | (bytes[at + 1]! << 8);
    at += 2;
    if (valueLength > end - at) return 'metadata cut off in a value';
    at += valueLength;
  }
  return '';
}

/** Metadata out of bytes that `metadataFault` has passed. Values are copies; text that is no UTF-8 gets replacement characters. */
export function decodeMetadata(bytes: Uint8Array, at: number, end: number): Metadata {
  return new Metadata(entriesOf(bytes, at, end));
}

/** Header and trailer of a response, out of bytes that `metadataFault` has passed. */
export function decodeResponseMetadata(bytes: Uint8Array, at: number, end: number): ResponseMetadata {
  let header: Metadata | undefined;
  let trailer: Metadata | undefined;
  for (const [key, value] of entriesOf(bytes, at, end)) {
    if (key.startsWith(':')) {
      header ??= new Metadata();
      header.append(key.slice(1), value);
    } else {
      trailer ??= new Metadata();
      trailer.append(key, value);
    }
  }
  return { header, trailer };
}

function* entriesOf(bytes: Uint8Array, at: number, end: number): Iterable<[string, MetadataValue]> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  while (at < end) {
    const keyEnd = at + 1 + buffer[at]!;
    const key = buffer.toString('latin1', at + 1, keyEnd);
    const valueEnd = keyEnd + 2 + buffer.readUInt16LE(keyEnd);
    const value = key.endsWith('-bin')
      ? new Uint8Array(buffer.subarray(keyEnd + 2, valueEnd))
      : buffer.toString('utf8', keyEnd + 2, valueEnd);
    yield [key, value];
    at = valueEnd;
  }
}
