/**
 * Reads and writes little-endian 32-bit words at any position: fixed-width fields, aligned message tables and
 * headers of parts. For a few words, creating a DataView costs more than these functions do.
 */

/** Reads an unsigned word. Reads each byte once. */
export function readWord(bytes: Uint8Array, at: number): number {
  const low = (bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16);
  return (low | ((bytes[at + 3] as number) << 24)) >>> 0;
}

/** Writes the low 32 bits of `value`. Returns the position behind them. */
export function writeWord(bytes: Uint8Array, at: number, value: number): number {
  bytes[at] = value;
  bytes[at + 1] = value >>> 8;
  bytes[at + 2] = value >>> 16;
  bytes[at + 3] = value >>> 24;
  return at + 4;
}
