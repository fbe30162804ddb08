/**
 * The contexts of this JS thread, one per fabric and device: made when first used, closed a while after the
 * last channel or server that used it has closed, when no lease is out. A session can also have one for
 * itself. (Worker threads load this module anew, so each has its own.)
 */
import { type FabricName, fabrics } from '../fabrics.ts';
import * as limits from '../limits.ts';
import {
  addStats,
  Ctl,
  loadNative,
  type NativeOptions,
  type Stats,
  type VerbsOptions,
} from '../native/native.ts';
import { FabricContext } from './fabric-context.ts';
import { onMethodNames } from './traces/method-names.ts';

export interface ContextOptions extends Omit<NativeOptions, 'fabric' | 'verbs' | 'slotBytes'> {
  /** Default: see slotBytesOn(). */
  slotBytes?: number;
  /**
   * Where the last events of sessions that fail are written; empty: nowhere. Default: RDMA_RPC_TRACE_FOLDER.
   */
  traceFolder?: string;
}

/**
 * What a context is opened on: those that choose alike share one. `verbs` is for fabrics with devices only.
 */
export interface FabricChoice {
  readonly fabric: FabricName;
  readonly verbs?: VerbsOptions;
}

interface Entry {
  readonly key: string;
  /** The choice without its address; of a session's own context something that no other has. */
  readonly family: string;
  /** Of one session, and nobody else gets it. */
  readonly own: boolean;
  readonly context: FabricContext;
  readonly stopNaming: () => void;
  users: number;
  /** Ends it when nobody has come in the meantime. */
  lingers: NodeJS.Timeout | undefined;
  /** A look for the last lease is due. */
  closing: boolean;
  closed: boolean;
}

/** Those that are handed out. */
const entries = new Map<string, Entry>();
/** Those and others whose device was removed, until they are closed. */
const open = new Set<Entry>();
const entryOf = new WeakMap<FabricContext, Entry>();
/** Keys with an address for which another key's context did as well. As many as this host has addresses. */
const sameAs = new Map<string, string>();
let ownContexts = 0;
let options: ContextOptions = {
  polling: 'adaptive',
  countersPage: true,
  sendSlots: limits.sendSlots.default,
  arenaBytes: limits.arenaBytes.default,
  mrCacheBytes: limits.mrCacheBytes.default,
  mrCacheEntriesMax: limits.mrCacheEntriesMax.default,
  mrCacheIdleMs: limits.mrCacheIdleMs.default,
  traceFolder: process.env.RDMA_RPC_TRACE_FOLDER ?? '',
};

/**
 * Changes what contexts made from now on get. Throws when one is open already, as it would not apply to it.
 */
export function setContextOptions(given: Partial<ContextOptions>): void {
  closeLingering();
  if (entries.size > 0) {
    const names = [...new Set([...entries.values()].map(({ context }) => context.fabric))].join(', ');
    throw new Error(
      `configure() comes too late: the context for ${names} is open; call it before the first channel or server is used`,
    );
  }
  options = { ...options, ...given };
}

export function contextOptions(): ContextOptions {
  return options;
}

const defaultSlotBytes = { shared: limits.shmSlotBytes, registered: limits.slotBytes.default };

/** What a slot of such fabrics holds. */
export function slotBytesOf(slots: keyof typeof defaultSlotBytes): number {
  return options.slotBytes ?? defaultSlotBytes[slots];
}

/** What a slot of this fabric holds. */
export function slotBytesOn(fabric: FabricName): number {
  return slotBytesOf(fabrics[fabric].slots);
}

/** What a context of this fabric is made with. */
export function nativeOptions(fabric: FabricName): NativeOptions {
  const { traceFolder: _, ...rest } = options;
  return { ...rest, slotBytes: slotBytesOn(fabric), fabric };
}

/**
 * Bytes that a context and its first session register on a device: their slots, each with room for headers.
 */
export function firstSessionBytes(): number {
  const slots = options.sendSlots + limits.inflight.default + limits.receivesBesides;
  return slots * (slotBytesOf('registered') + limits.slotHeadBytes);
}

function keyOf({ fabric, verbs = {} }: FabricChoice): string {
  return fabrics[fabric].hasDevice ? `${fabric} ${JSON.stringify(Object.entries(verbs).sort())}` : fabric;
}

function openEntry(key: string, choice: FabricChoice, sendSlots: number, own = false): Entry {
  // What it has pinned may be what this one may not pin beside it.
  closeLingering();
  const { fabric, verbs } = choice;
  const given = fabrics[fabric].hasDevice && verbs !== undefined ? { verbs } : {};
  const native = loadNative().createContext({ ...nativeOptions(fabric), sendSlots, ...given });
  const context = new FabricContext(fabric, native, options.traceFolder);
  const stopNaming = onMethodNames((id, name) => context.native.nameMethod(id, name));
  const entry: Entry = {
    key,
    family: own ? key : familyOf(choice),
    own,
    context,
    stopNaming,
    users: 0,
    lingers: undefined,
    closing: false,
    closed: false,
  };
  entries.set(key, entry);
  open.add(entry);
  entryOf.set(context, entry);
  // The next user opens the device anew, when it is there again.
  context.onDeviceGone(() => {
    forget(entry);
    setImmediate(() => closeUnused(entry));
  });
  return entry;
}

/** The choice but for its address: what contexts must have in common for one to do for both. */
function familyOf({ fabric, verbs = {} }: FabricChoice): string {
  const { address: _, ...rest } = verbs;
  return keyOf({ fabric, verbs: rest });
}

function entryFor(choice: FabricChoice): Entry {
  const key = keyOf(choice);
  const known = entries.get(key) ?? entries.get(sameAs.get(key) ?? '');
  if (known !== undefined) return known;
  const entry = openEntry(key, choice, options.sendSlots);
  if (choice.verbs?.address === undefined) return entry;
  // An address that is not of the device, or that it would have taken by itself, needs no context of its own.
  const { path } = entry.context.native;
  const same = [...entries.values()].find(
    (other) => other !== entry && other.family === entry.family && other.context.native.path === path,
  );
  if (same === undefined) return entry;
  sameAs.set(key, same.key);
  close(entry);
  return same;
}

/**
 * The context for a choice, with one more user. Throws when the addon is missing or the fabric cannot be
 * opened.
 */
export function acquireContext(choice: FabricChoice): FabricContext {
  const entry = entryFor(choice);
  ++entry.users;
  return entry.context;
}

/**
 * A context for one session: device, protection domain, arena and caches that no other session has. It is
 * given back like any other. `callSlots`: of that session.
 */
export function acquireOwnContext(choice: FabricChoice, callSlots: number): FabricContext {
  const sendSlots = Math.min(options.sendSlots, Math.max(limits.sendSlots.min, callSlots));
  const key = `${keyOf(choice)} ${++ownContexts}`;
  const entry = openEntry(key, choice, sendSlots, true);
  entry.users = 1;
  return entry.context;
}

/** The context for a choice without becoming a user: for leases, which keep it open themselves. */
export function peekContext(choice: FabricChoice): FabricContext {
  return entryFor(choice).context;
}

/** For tests that count what is left. */
export function openContexts(): readonly FabricContext[] {
  return [...entries.values()].map(({ context }) => context);
}

export function releaseContext(context: FabricContext): void {
  const entry = entryOf.get(context);
  if (entry === undefined || entry.closed) return;
  --entry.users;
  if (entry.users > 0) return;
  // Not at once: we may be inside an event callback of this very context, and a user may follow. To open one
  // costs more than to open a session on it, and for each few of their buffers V8 collects everything.
  const atOnce = entry.own || context.deviceGone || options.polling === 'busy';
  clearTimeout(entry.lingers);
  if (atOnce) setImmediate(() => closeUnused(entry));
  else entry.lingers = setTimeout(() => closeUnused(entry), limits.contextLingerMs).unref();
}

/** Contexts that only wait whether a user follows make room for what cannot be beside them. */
function closeLingering(): void {
  for (const entry of open) if (entry.lingers !== undefined && !entry.context.dispatching) closeUnused(entry);
}

function forget(entry: Entry): void {
  if (entries.get(entry.key) === entry) entries.delete(entry.key);
}

function closeUnused(entry: Entry): void {
  if (entry.users > 0 || entry.closed) return;
  // Leases keep their memory, but not a device that the system is waiting for.
  if (entry.context.deviceGone) entry.context.native.leaveDevice();
  if (entry.context.native.stats().arenaLeasedBlocks === 0) {
    close(entry);
    return;
  }
  if (entry.closing) return;
  // Leased memory would vanish under its views. A lease may also end by being collected, which nobody tells
  // us.
  entry.closing = true;
  setTimeout(() => {
    entry.closing = false;
    closeUnused(entry);
  }, limits.leaseCheckMs).unref();
}

function close(entry: Entry): void {
  entry.closed = true;
  clearTimeout(entry.lingers);
  entry.stopNaming();
  open.delete(entry);
  forget(entry);
  entry.context.native.close();
}

const zero: Stats = {
  calls: 0,
  requests: 0,
  streamMessagesSent: 0,
  streamMessagesReceived: 0,
  inlineSends: 0,
  eagerSends: 0,
  segmentedMessages: 0,
  bulkReads: 0,
  bulkReadBytes: 0,
  bulkWrites: 0,
  bulkWriteBytes: 0,
  bulkRequests: 0,
  bulkResponses: 0,
  replyBuffersPredicted: 0,
  replyBuffersAsked: 0,
  sentBytes: 0,
  receivedBytes: 0,
  retries: 0,
  completions: 0,
  stalls: 0,
  stalledMs: 0,
  creditFrames: 0,
  protocolErrors: 0,
  lateResponses: 0,
  callsReleasedLate: 0,
  callsPendingRelease: 0,
  mrHits: 0,
  mrMisses: 0,
  mrEvictions: 0,
  mrBackground: 0,
  mrBytes: 0,
  arenaBytes: 0,
  arenaLeasedBytes: 0,
  arenaLeasedBlocks: 0,
  sendSlotsFree: 0,
  memoryWaiters: 0,
  sessions: 0,
  queuePairs: 0,
  memoryRegions: 0,
  memoryBytes: 0,
  memoryWindows: 0,
  openFds: 0,
  turns: 0,
  batches: 0,
  sleeps: 0,
  loopLagMaxUs: 0,
};

/** A call is tried again: the counter is of the thread, so that one of its contexts has it. */
export function countRetry(): void {
  const [entry] = open;
  if (entry !== undefined) ++entry.context.native.control[Ctl.retries]!;
}

/**
 * Counters of this thread's open contexts, added up, of longest times the longest; zeros when there is none.
 */
export function contextStats(fabric?: FabricName): Stats {
  const sum = { ...zero };
  for (const { context } of open) {
    if (fabric !== undefined && context.fabric !== fabric) continue;
    addStats(sum, context.native.stats());
  }
  return sum;
}
