/**
 * Numbers that identify the content of a batch. Native code has checked a batch with the same number before,
 * so it need not read and check the batch again. The batches of this folder take them, on the thread that
 * posts.
 */

/** A typed array, because a variable would need a new object for each number from 2^31 on. */
const last = new Float64Array(1);

/** Returns a number from 1 on that no other batch of this thread has had. */
export function nextStamp(): number {
  const stamp = last[0]! + 1;
  last[0] = stamp;
  return stamp;
}
