/**
 * Room for strings and lengths, as both measuring and writing compute it. Used by the primitives of generated
 * code.
 */

/** Size of the largest length below 2^32 as a varint. */
export const lengthBytes = 5;

/**
 * From this length on, measuring a string costs less than the memory that three bytes per character would
 * waste.
 */
const measuredChars = 1024;

/** Returns the maximum size of a string together with its length. */
export function stringRoom(text: string): number {
  return lengthBytes + (text.length < measuredChars ? text.length * 3 : Buffer.byteLength(text));
}
