/**
 * The contexts of this JS thread, one per fabric and device. A context is opened when it is first used. It is
 * closed some time after its last channel or server has closed, when no lease is left. A session can also
 * have a context of its own. Each worker thread loads this module anew, so it has its own contexts.
 */
import { type FabricName, fabrics } from '../fabrics.ts';
import * as limits from '../limits.ts';
import { LoopbackContext } from '../loopback/context.ts';
import {
  addStats,
  Ctl,
  loadNative,
  type NativeOptions,
  noStats,
  type Stats,
  type VerbsOptions,
} from '../native/native.ts';
import { FabricContext } from './fabric-context.ts';
import { onMethodNames } from './traces/method-names.ts';

export interface ContextOptions extends Omit<NativeOptions, 'fabric' | 'verbs' | 'slotBytes'> {
  /** Default: see slotBytesOn(). */
  slotBytes?: number;
  /**
   * Folder for the traces of failed sessions; with an empty text, no trace is written. Default:
   * RDMA_RPC_TRACE_FOLDER.
   */
  traceFolder?: string;
}

/**
 * The fabric and the device on which a context is opened. Users with the same choice share one context.
 * `verbs` is only for fabrics with devices.
 */
export interface FabricChoice {
  readonly fabric: FabricName;
  readonly verbs?: VerbsOptions;
}

interface Entry {
  readonly key: string;
  /**
   * The key without the address. Contexts that differ only in their address have the same family. A session's
   * own context has a unique family.
   */
  readonly family: string;
  /** The context belongs to one session and is not shared. */
  readonly own: boolean;
  readonly context: FabricContext;
  readonly stopNaming: () => void;
  users: number;
  /** Closes the context unless another user takes it first. */
  lingers: NodeJS.Timeout | undefined;
  /** A timer will check whether the last lease is gone. */
  closing: boolean;
  closed: boolean;
}

/** Contexts that new users can get. */
const entries = new Map<string, Entry>();
/** All contexts that are not closed yet, including those whose device was removed. */
const open = new Set<Entry>();
const entryOf = new WeakMap<FabricContext, Entry>();
/**
 * Maps a key with an address to the key whose context serves that address, too. It has at most one entry for
 * each address of this host.
 */
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
 * Changes the options of contexts that are opened from now on. Throws when a context is already open, because
 * the options would not apply to it.
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

/** Returns the size of a slot in bytes, on fabrics with this kind of slots. */
export function slotBytesOf(slots: keyof typeof defaultSlotBytes): number {
  return options.slotBytes ?? defaultSlotBytes[slots];
}

/** Returns the number of bytes that a slot holds on this fabric. */
export function slotBytesOn(fabric: FabricName): number {
  return slotBytesOf(fabrics[fabric].slots);
}

/** Returns the options with which a context of this fabric is opened. */
export function nativeOptions(fabric: FabricName): NativeOptions {
  const { traceFolder: _, ...rest } = options;
  return { ...rest, slotBytes: slotBytesOn(fabric), fabric };
}

/**
 * Bytes that an RDMA device's driver locks for each request in a send queue, computed from the layout of
 * mlx5.
 */
const queueEntryBytes = 256;

/**
 * Returns the number of bytes that a context and its first session lock on a device. They consist of the
 * slots, each with room for headers, and of the session's send queue.
 */
export function firstSessionBytes(): number {
  const slots = options.sendSlots + limits.inflight.default + limits.receivesBesides;
  const queue = 2 * limits.inflight.default * queueEntryBytes;
  return slots * (slotBytesOf('registered') + limits.slotHeadBytes) + queue;
}

function keyOf({ fabric, verbs = {} }: FabricChoice): string {
  return fabrics[fabric].hasDevice ? `${fabric} ${JSON.stringify(Object.entries(verbs).sort())}` : fabric;
}

function openEntry(key: string, choice: FabricChoice, sendSlots: number, own = false): Entry {
  // A context that lingers may have pinned memory, which the locked-memory limit would then deny to the new
  // context.
  closeLingering();
  const { fabric, verbs } = choice;
  const given = fabrics[fabric].hasDevice && verbs !== undefined ? { verbs } : {};
  const made = { ...nativeOptions(fabric), sendSlots, ...given };
  const native = fabrics[fabric].needsAddon ? loadNative().createContext(made) : new LoopbackContext(made);
  const context = new FabricContext(fabric, native, options);
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
  // Removes the context from the table, so that the next user opens the device again when the device has
  // returned.
  context.onDeviceGone(() => {
    forget(entry);
    setImmediate(() => closeUnused(entry));
  });
  return entry;
}

/**
 * Returns the key of the choice without its address. Choices of one family can share a context if they lead
 * to the same device path.
 */
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
  // Another context may have the same device path, because the address does not belong to the device, or
  // because the device would choose this address by default. The choice then uses that context.
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
 * Returns the context for a choice and counts one more user. Throws when the addon is missing or the fabric
 * cannot be opened.
 */
export function acquireContext(choice: FabricChoice): FabricContext {
  const entry = entryFor(choice);
  ++entry.users;
  return entry.context;
}

/**
 * Opens a context for one session only, with its own device, protection domain, arena and caches. It is
 * released like any other context. `callSlots` is the number of call slots of that session.
 */
export function acquireOwnContext(choice: FabricChoice, callSlots: number): FabricContext {
  const sendSlots = Math.min(options.sendSlots, Math.max(limits.sendSlots.min, callSlots));
  const key = `${keyOf(choice)} ${++ownContexts}`;
  const entry = openEntry(key, choice, sendSlots, true);
  entry.users = 1;
  return entry.context;
}

/**
 * Returns the context for a choice without counting a user. Leases use this list, because they keep the
 * context open themselves.
 */
export function peekContext(choice: FabricChoice): FabricContext {
  return entryFor(choice).context;
}

/** Tests use it to check which contexts are still open. */
export function openContexts(): readonly FabricContext[] {
  return [...entries.values()].map(({ context }) => context);
}

export function releaseContext(context: FabricContext): void {
  const entry = entryOf.get(context);
  if (entry === undefined || entry.closed) return;
  --entry.users;
  if (entry.users > 0) return;
  // The context is not closed at once. This code may run inside an event callback of the context, and a new
  // user may follow. Opening a context costs more than opening a session on it. After every few contexts, V8
  // also collects its whole heap because of the contexts' buffers.
  const atOnce = entry.own || context.deviceGone || options.polling === 'busy';
  clearTimeout(entry.lingers);
  if (atOnce) setImmediate(() => closeUnused(entry));
  else entry.lingers = setTimeout(() => closeUnused(entry), limits.contextLingerMs).unref();
}

/** Closes the contexts that linger without a user, so that a new context can use their memory. */
function closeLingering(): void {
  for (const entry of open) if (entry.lingers !== undefined && !entry.context.dispatching) closeUnused(entry);
}

function forget(entry: Entry): void {
  if (entries.get(entry.key) === entry) entries.delete(entry.key);
}

function closeUnused(entry: Entry): void {
  if (entry.users > 0 || entry.closed) return;
  // The system waits until a removed device is closed, so this code closes the device even if leases still
  // use its memory.
  if (entry.context.deviceGone) entry.context.native.leaveDevice();
  if (entry.context.native.stats().arenaLeasedBlocks === 0) {
    close(entry);
    return;
  }
  if (entry.closing) return;
  // Leased memory must not be freed under its views. The check is repeated later, because a lease may also
  // end by garbage collection, which causes no event.
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

/**
 * Counts a further attempt at a call, after the first attempt. The counter belongs to the thread, so any
 * context of the thread can store it.
 */
export function countRetry(): void {
  const [entry] = open;
  if (entry !== undefined) ++entry.context.native.control[Ctl.retries]!;
}

/**
 * Returns the counters of this thread's open contexts. Each is the sum over the contexts, except that a
 * longest time is the maximum. All are 0 when no context is open.
 */
export function contextStats(fabric?: FabricName): Stats {
  const sum = { ...noStats };
  for (const { context } of open) {
    if (fabric !== undefined && context.fabric !== fabric) continue;
    addStats(sum, context.native.stats());
  }
  return sum;
}
