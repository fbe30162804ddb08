/**
 * Words of 32 bits, little-endian, at any position: of fixed-width fields, tables of images and headers of
 * parts. A DataView for a few of them costs more than they do.
 */

/** Unsigned. Looks once at each byte. */
export function readWord(bytes: Uint8Array, at: number): number {
  const low = (bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16);
  return (low | ((bytes[at + 3] as number) << 24)) >>> 0;
}

/** The low 32 bits of `value`. Returns the position behind them. */
export function writeWord(bytes: Uint8Array, at: number, value: number): number {
  bytes[at] = value;
  bytes[at + 1] = value >>> 8;
  bytes[at + 2] = value >>> 16;
  bytes[at + 3] = value >>> 24;
  return at + 4;
}
