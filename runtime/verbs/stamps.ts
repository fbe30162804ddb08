/**
 * Numbers that identify the content of a batch. The numbers lie behind the batch's records. When native code
 * finds a number that it has seen before, it does not read and check the records again. The batches of this
 * folder use them, on the thread that posts.
 */

/** Number of words that a batch has behind its records. */
export const stampWords = 1;

/** A typed array, because a variable would need a new object for each number from 2^31 on. */
const last = new Float64Array(1);

/**
 * If the records have no number, gives them the next number. No other records of this thread have had that
 * number.
 */
export function stamp(rows: Float64Array): void {
  const at = rows.length - stampWords;
  if (rows[at] !== 0) return;
  last[0] = last[0]! + 1;
  rows[at] = last[0];
}

/** Takes the number away from records that change. */
export function unstamp(rows: Float64Array): void {
  rows[rows.length - stampWords] = 0;
}
