/**
 * Values that can be verified. The bytes follow from the key and the version, so that code that knows both
 * can check every byte. A value that was torn, that belongs to another key, or that has an older version
 * fails the check. The load uses this file.
 */

/**
 * Returns the FNV-1a hash of the key, mixed with the version. It is never 0, because the generator below
 * would return 0 for ever.
 */
function seedOf(key: string, version: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ version, 0x01000193);
  return hash >>> 0 || 1;
}

/** Returns the next number of Marsaglia's xorshift with 32 bits of state. */
export function nextRandom(state: number): number {
  let x = state;
  x ^= x << 13;
  x ^= x >>> 17;
  x ^= x << 5;
  return x;
}

/** Fills `value` with the bytes for this key and version. */
export function fillValue(value: Uint8Array, key: string, version: number): void {
  const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
  const wholeWords = value.length & ~3;
  let state = seedOf(key, version);
  for (let at = 0; at < wholeWords; at += 4) {
    state = nextRandom(state);
    view.setInt32(at, state, true);
  }
  state = nextRandom(state);
  for (let at = wholeWords; at < value.length; at++) value[at] = state >>> (8 * (at - wholeWords));
}

/** Returns true when every byte is the byte that `fillValue` would have written. */
export function checkValue(value: Uint8Array, key: string, version: number): boolean {
  const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
  const wholeWords = value.length & ~3;
  let state = seedOf(key, version);
  for (let at = 0; at < wholeWords; at += 4) {
    state = nextRandom(state);
    if (view.getInt32(at, true) !== state) return false;
  }
  state = nextRandom(state);
  for (let at = wholeWords; at < value.length; at++) {
    if (value[at] !== ((state >>> (8 * (at - wholeWords))) & 0xff)) return false;
  }
  return true;
}
