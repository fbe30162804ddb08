/**
 * The time limits of the demo, long enough for a busy machine. Only a server or a network that is gone for
 * good should reach one of them.
 */

export const connectMs = 120_000;
export const callMs = 600_000;

/** The error in one sentence, with which the demo's processes end. */
export function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
