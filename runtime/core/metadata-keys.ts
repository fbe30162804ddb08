/**
 * Keys of metadata. A program uses a few of them again and again, so those that were seen lately are kept
 * with all that is known of them: an entry then costs neither a pattern, nor a string in lower case, nor a
 * string made of bytes. Used by Metadata and its wire form, on every JS thread.
 */

export interface MetadataKey {
  /** In lower case. */
  readonly name: string;
  /** The characters of `name`. */
  readonly bytes: Uint8Array;
  /** Its values are bytes and not text. */
  readonly binary: boolean;
  /** Of `bytes`: keys with different ones are different. */
  readonly hash: number;
}

const pattern = /^[0-9a-z_.-]{1,255}$/;
const ending = '-bin';

/**
 * Peers choose keys, too, so there is a limit to how many are kept, and how long they are. A power of two.
 */
const keptMax = 256;
const keptCharsMax = 64;

/** By what an application has written. */
const byText = new Map<string, MetadataKey>();
/** By a hash of the bytes; a key takes the place of another one with the same. */
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
 * There may be several objects for one key. The hashes spare a comparison of texts with each key of the same
 * length.
 */
export function isSameKey(one: MetadataKey, other: MetadataKey): boolean {
  return one === other || (one.hash === other.hash && one.name === other.name);
}

export function isKey(name: string): boolean {
  return pattern.test(name);
}

/** The key that an application means. Throws a TypeError when it is none. */
export function keyOf(given: string): MetadataKey {
  return byText.get(given) ?? newKeyOf(given);
}

function newKeyOf(given: string): MetadataKey {
  // Anything else than a string may be given in JavaScript, and is never found by its text.
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

/** The key in bytes [at, end), which are known to be those of one. */
export function keyAt(bytes: Uint8Array, at: number, end: number): MetadataKey {
  const length = end - at;
  const place = hashOf(bytes, at, end) & (keptMax - 1);
  const kept = byBytes[place];
  if (kept !== undefined && kept.bytes.length === length && isAt(kept.bytes, bytes, at)) return kept;
  const name = Buffer.from(bytes.buffer, bytes.byteOffset + at, length).toString('latin1');
  // The one that an application has written, so that both are mostly one object.
  const key = byText.get(name) ?? newKey(name);
  if (length <= keptCharsMax) byBytes[place] = key;
  return key;
}

function isAt(key: Uint8Array, bytes: Uint8Array, at: number): boolean {
  for (let i = 0; i < key.length; ++i) if (key[i] !== bytes[at + i]) return false;
  return true;
}
