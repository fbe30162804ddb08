/**
 * How much strings and lengths may take: what both measuring and writing go by. Used by the primitives of
 * generated code.
 */

/** A length below 2^32 as a varint. */
export const lengthBytes = 5;

/** From here on measuring a string costs less than the memory that three bytes per character would waste. */
const measuredChars = 1024;

/** Most bytes of a string and its length. */
export function stringRoom(text: string): number {
  return lengthBytes + (text.length < measuredChars ? text.length * 3 : Buffer.byteLength(text));
}
