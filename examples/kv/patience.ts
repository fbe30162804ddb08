/**
 * How long the demo waits: as long as a machine may need that is busy with something else. Only a server or a
 * network that is gone for good should end in one of these.
 */

export const connectMs = 120_000;
export const callMs = 600_000;

/** What went wrong, in one sentence: that is what the demo's processes end with. */
export function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
