/**
 * Hashes for consistent hashing. All clients must choose the same server for a key, so the hashes have no
 * seed and are the same in every version. They are 32 bits of FNV-1a with the final mixing step of
 * MurmurHash3, because FNV alone gives similar texts similar hashes. An attacker may choose keys that all
 * belong to one server; the limit of that server's load protects against this. hash-ring.ts and
 * bounded-hash.ts use this file.
 */
import { Buffer } from 'node:buffer';
import { valueStart } from '../../core/metadata-wire.ts';

/** Returns the hash of bytes [from, end), an unsigned number of 32 bits. */
function hashOf(bytes: Uint8Array, from = 0, end: number = bytes.length): number {
  let hash = 0x811c9dc5;
  for (let i = from; i < end; ++i) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
  return mixed(hash);
}

/** Returns a hash in which each bit of the given number affects all 32 bits. */
export function mixed(hash: number): number {
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

export function hashOfText(text: string): number {
  return hashOf(Buffer.from(text));
}

/**
 * Returns the hash of the first value of `key` in metadata in wire form (core/metadata-wire.ts), or -1 when
 * the metadata has no such key.
 */
export function keyHash(metadata: Uint8Array, key: Uint8Array): number {
  const start = valueStart(metadata, key);
  if (start < 0) return -1;
  return hashOf(metadata, start, start + metadata[start - 2]! + metadata[start - 1]! * 256);
}
