/**
 * The time limits of the demo, long enough for a busy machine. They should be reached only when a server or a
 * network is gone for good.
 */

export const connectMs = 120_000;
export const callMs = 600_000;

/** Returns the error as one sentence, with which the demo's processes end. */
export function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
