/**
 * Counts the memory and objects that the runtime and native code hold for calls. When all calls have ended
 * and their messages are released, all counts have their initial values again. A registered buffer is not a
 * leak while native code keeps its registration.
 */
import { contextStats, openContexts, peekContext } from '../../runtime/boundary/contexts.ts';
import type { FabricContext } from '../../runtime/boundary/fabric-context.ts';
import { Ctl, type NativeOptions } from '../../runtime/native/native.ts';

export type Kept = Readonly<Record<string, number>>;

/** Returns the counts of one context. */
export function keptBy(context: FabricContext): Kept {
  const { native } = context;
  const { arenaLeasedBlocks, arenaLeasedBytes, callsPendingRelease } = native.stats();
  return {
    ...context.kept,
    sendSlotsOut: native.freeSlots.length - native.control[Ctl.freeSlots]!,
    slotsOfSessions: native.sessionSlots.reduce((sum, word) => sum + word, 0),
    arenaLeasedBlocks,
    arenaLeasedBytes,
    callsPendingRelease,
  };
}

/** Returns the sums of all contexts of this thread. */
export function keptByAll(): Kept {
  const sum: Record<string, number> = { ...nothingKept };
  for (const context of openContexts())
    for (const [what, count] of Object.entries(keptBy(context))) sum[what] = (sum[what] ?? 0) + count;
  return sum;
}

/** Returns the counts of this thread's context of a fabric, which must be open. */
export function keptOn(fabric: NativeOptions['fabric']): Kept {
  return keptBy(peekContext({ fabric }));
}

export const nothingKept: Kept = {
  sending: 0,
  unheld: 0,
  slotWaiters: 0,
  memoryWaiters: 0,
  unowned: 0,
  sendSlotsOut: 0,
  slotsOfSessions: 0,
  arenaLeasedBlocks: 0,
  arenaLeasedBytes: 0,
  callsPendingRelease: 0,
};

/** Returns the size of the registrations of application buffers, in bytes. */
export function registeredBytes(fabric: NativeOptions['fabric']): number {
  return contextStats(fabric).mrBytes;
}
