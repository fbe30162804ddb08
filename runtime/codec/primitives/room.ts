/**
 * Computes the room for strings and lengths, for both measuring and writing. The primitives of generated code
 * use it.
 */

/** Size of the largest length below 2^32, as a varint. */
export const lengthBytes = 5;

/**
 * From this number of characters on, measuring a string costs less than the memory that three bytes per
 * character would waste.
 */
const measuredChars = 1024;

/** Returns the maximum size of a string together with its length. */
export function stringRoom(text: string): number {
  return lengthBytes + (text.length < measuredChars ? text.length * 3 : Buffer.byteLength(text));
}
