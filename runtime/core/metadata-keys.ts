/**
 * Keys of metadata. A program uses a few keys again and again, so recently used keys are cached with all
 * facts about them. An entry with a cached key needs no pattern match, no conversion to lower case and no
 * conversion of bytes to a string. Metadata and its wire form use this file on every JS thread.
 */

export interface MetadataKey {
  /** The key in lower case. */
  readonly name: string;
  /** The characters of `name`. */
  readonly bytes: Uint8Array;
  /** Whether its values are bytes rather than text. */
  readonly binary: boolean;
  /** Hash of `bytes`. Keys with different hashes are different. */
  readonly hash: number;
}

const pattern = /^[0-9a-z_.-]{1,255}$/;
const ending = '-bin';

/**
 * Limit of cached keys, a power of two. Peers choose keys as well, so the number of cached keys and their
 * length are limited.
 */
const keptMax = 256;
const keptCharsMax = 64;

/** Cached keys by the text that the application has written. */
const byText = new Map<string, MetadataKey>();
/** Cached keys by a hash of their bytes. A key replaces another key with the same hash. */
const byBytes: (MetadataKey | undefined)[] = new Array<undefined>(keptMax).fill(undefined);

function newKey(name: string): MetadataKey {
  const bytes = Buffer.from(name, 'latin1');
  return { name, bytes, binary: name.endsWith(ending), hash: hashOf(bytes, 0, bytes.length) };
}

function hashOf(bytes: Uint8Array, at: number, end: number): number {
  let hash = end - at;
  for (let i = at; i < end; ++i) hash = (Math.imul(hash, 31) + bytes[i]!) | 0;
  return hash;
}

/**
 * Returns whether two objects stand for the same key. Several objects may stand for one key. The hashes are
 * compared first, because comparing the texts of all keys with the same length would take longer.
 */
export function isSameKey(one: MetadataKey, other: MetadataKey): boolean {
  return one === other || (one.hash === other.hash && one.name === other.name);
}

export function isKey(name: string): boolean {
  return pattern.test(name);
}

/** Returns the key for a text of the application. Throws a TypeError when it is invalid. */
export function keyOf(given: string): MetadataKey {
  return byText.get(given) ?? newKeyOf(given);
}

function newKeyOf(given: string): MetadataKey {
  // Untyped callers may pass a value that is not a string. Such a value is never in the cache.
  const text = String(given);
  const name = text.toLowerCase();
  if (!isKey(name)) {
    throw new TypeError(
      `metadata key ${JSON.stringify(given)}: use 1 to 255 of the characters 0-9 a-z _ . -`,
    );
  }
  const known = byText.get(name);
  const key = known ?? newKey(name);
  if (text.length <= keptCharsMax) keep(text, key);
  return key;
}

function keep(text: string, key: MetadataKey): void {
  if (byText.size >= keptMax) byText.clear();
  byText.set(text, key);
}

/** Returns the key in bytes [at, end), which are known to be valid. */
export function keyAt(bytes: Uint8Array, at: number, end: number): MetadataKey {
  const length = end - at;
  const place = hashOf(bytes, at, end) & (keptMax - 1);
  const kept = byBytes[place];
  if (kept !== undefined && kept.bytes.length === length && isAt(kept.bytes, bytes, at)) return kept;
  const name = Buffer.from(bytes.buffer, bytes.byteOffset + at, length).toString('latin1');
  // Reuses the object of the application's text, so that a received key and a written key are usually the
  // same object.
  const key = byText.get(name) ?? newKey(name);
  if (length <= keptCharsMax) byBytes[place] = key;
  return key;
}

function isAt(key: Uint8Array, bytes: Uint8Array, at: number): boolean {
  for (let i = 0; i < key.length; ++i) if (key[i] !== bytes[at + i]) return false;
  return true;
}
