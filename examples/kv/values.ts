/**
 * Values that prove themselves: the bytes follow from the key and the version, so whoever knows both can
 * check every one of them. A value that was torn, swapped with another key's, or of an older version does not
 * pass. Used by the load.
 */

/** FNV-1a of the key, mixed with the version; never 0, where the generator below would stay for ever. */
function seedOf(key: string, version: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ version, 0x01000193);
  return hash >>> 0 || 1;
}

/** Marsaglia's xorshift with 32 bits of state. */
export function nextRandom(state: number): number {
  let x = state;
  x ^= x << 13;
  x ^= x >>> 17;
  x ^= x << 5;
  return x;
}

/** Writes the value of that key and version over all of `value`. */
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

/** True when every byte is the one that `fillValue` would have written. */
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
