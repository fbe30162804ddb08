/**
 * The contexts of this JS thread, one per fabric: made when first used, closed when the last channel or server that used it has
 * closed and no lease is out. (Worker threads load this module anew, so each has its own.)
 */
import * as limits from '../limits.ts';
import { loadNative, type NativeOptions, type NativeStats } from '../native.ts';
import { FabricContext } from './fabric-context.ts';

export type FabricName = NativeOptions['fabric'];
export type ContextOptions = Omit<NativeOptions, 'fabric'>;

interface Entry {
  readonly context: FabricContext;
  users: number;
}

const entries = new Map<FabricName, Entry>();
let options: ContextOptions = {
  polling: 'adaptive',
  slotBytes: limits.slotBytes.default,
  sendSlots: limits.sendSlots.default,
  arenaBytes: limits.arenaBytes.default,
  mrCacheBytes: limits.mrCacheBytes.default,
  mrCacheEntries: limits.mrCacheEntries.default,
  mrCacheIdleMs: limits.mrCacheIdleMs.default,
};

/** Changes what contexts made from now on get. Throws when one is open already, as it would not apply to it. */
export function setContextOptions(given: Partial<ContextOptions>): void {
  if (entries.size > 0) {
    const names = [...entries.keys()].join(', ');
    throw new Error(
      `configure() comes too late: the context for ${names} is open; call it before the first channel or server is used`,
    );
  }
  options = { ...options, ...given };
}

export function contextOptions(): ContextOptions {
  return options;
}

function entryFor(fabric: FabricName): Entry {
  let entry = entries.get(fabric);
  if (entry === undefined) {
    const native = loadNative().createContext({ ...options, fabric });
    entry = { context: new FabricContext(fabric, native), users: 0 };
    entries.set(fabric, entry);
  }
  return entry;
}

/** The context for a fabric, with one more user. Throws when the addon is missing or the fabric cannot be opened. */
export function acquireContext(fabric: FabricName): FabricContext {
  const entry = entryFor(fabric);
  ++entry.users;
  return entry.context;
}

/** The context for a fabric without becoming a user: for leases, which keep it open themselves. */
export function peekContext(fabric: FabricName): FabricContext {
  return entryFor(fabric).context;
}

export function releaseContext(context: FabricContext): void {
  const entry = entries.get(context.fabric);
  if (entry === undefined || entry.context !== context) return;
  --entry.users;
  // Not at once: we may be inside an event callback of this very context, and a user may follow at once.
  if (entry.users === 0) setImmediate(() => closeUnused(context.fabric, entry));
}

function closeUnused(fabric: FabricName, entry: Entry): void {
  if (entry.users > 0 || entries.get(fabric) !== entry) return;
  // Leased memory would vanish under its views. The context then stays, idle, for the next user.
  if (entry.context.native.stats().arenaLeasedBlocks > 0) return;
  entries.delete(fabric);
  entry.context.native.close();
}

const zero: NativeStats = {
  calls: 0,
  requests: 0,
  inlineSends: 0,
  eagerSends: 0,
  bulkReads: 0,
  bulkReadBytes: 0,
  bulkWrites: 0,
  bulkWriteBytes: 0,
  grantsPredicted: 0,
  grantsAsked: 0,
  creditFrames: 0,
  protocolErrors: 0,
  lateResponses: 0,
  mrHits: 0,
  mrMisses: 0,
  mrEvictions: 0,
  mrBytes: 0,
  arenaBytes: 0,
  arenaLeasedBytes: 0,
  arenaLeasedBlocks: 0,
  sessions: 0,
  queuePairs: 0,
  memoryRegions: 0,
  memoryWindows: 0,
  openFds: 0,
  turns: 0,
  batches: 0,
  sleeps: 0,
};

/** Counters of this thread's open contexts, added up; zeros when there is none. */
export function contextStats(fabric?: FabricName): NativeStats {
  const sum = { ...zero };
  for (const [name, entry] of entries) {
    if (fabric !== undefined && name !== fabric) continue;
    const one = entry.context.native.stats();
    for (const counter of Object.keys(zero) as (keyof NativeStats)[]) sum[counter] += one[counter];
  }
  return sum;
}
