/**
 * Manages the memory that this side exposes to one peer. Each exposure is a region of its own in the
 * protection domain of that peer, and the peer learns the region's key when it opens the exposure. Revoking
 * an exposure takes two steps, because a device that refuses a request ends the queue pair. First the peer is
 * asked to stop, and answers when its operations have completed. Then the region is closed. A peer that does
 * not answer in time loses the memory too. A link owns this object and uses it on its JS thread.
 */

import { Status } from '../core/errors/status.ts';
import { guardedInRoot } from '../core/foreign.ts';
import { checkedOptions, type OptionRules } from '../core/options.ts';
import { Access } from '../verbs/constants.ts';
import type { MemoryRegion, Registrable } from '../verbs/memory-region.ts';
import { refusal } from './failures.ts';
import type { RemoteMemory } from './gen/rdma_rpc/remote_memory.rdma.ts';
import { expiresMs as expiresRange } from './limits.ts';
import type { Local } from './local.ts';
import type { ExposeOptions, Exposure, Written } from './memory-type.ts';
import type { MemoryQueue } from './queue.ts';
import { Kind, type Message, Right } from './wire.ts';

/** Counts exposed bytes against the quota of the peer. */
export interface ExposedBytes {
  /** Throws when the peer's limit would be exceeded. */
  expose(bytes: number): void;
  unexpose(bytes: number): void;
}

export interface ExposuresOptions {
  readonly exposuresMax: number;
  readonly revokeMs: number;
}

interface CheckedExposeOptions {
  readonly read: boolean;
  readonly write: boolean;
  readonly atomic: boolean;
  readonly expiresMs?: number;
  readonly onWritten?: (written: Written) => void;
}
const exposeRules = {
  read: { kind: 'boolean', default: false },
  write: { kind: 'boolean', default: false },
  atomic: { kind: 'boolean', default: false },
  expiresMs: { kind: 'integer', range: expiresRange },
  onWritten: { kind: 'function' },
} as const satisfies OptionRules;

const atomicBytes = 8;
const idMax = 2 ** 32 - 1;

class OpenExposure implements Exposure {
  readonly handle: RemoteMemory;
  readonly bytes: Uint8Array;
  readonly ended: Promise<string>;
  readonly rights: number;
  readonly region: MemoryRegion;
  readonly onWritten: CheckedExposeOptions['onWritten'];
  /** Whether the peer has the key of the region. */
  isOpened = false;
  /** Whether the peer was asked to end its operations. */
  isLeaving = false;
  timer: NodeJS.Timeout | undefined;
  closed = false;
  readonly #owner: Exposures;
  #end!: (reason: string) => void;

  constructor(owner: Exposures, handle: RemoteMemory, region: MemoryRegion, options: CheckedExposeOptions) {
    this.#owner = owner;
    this.handle = handle;
    this.region = region;
    this.bytes = region.bytes;
    this.rights = rightsOf(options);
    this.onWritten = options.onWritten;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  async close(): Promise<void> {
    this.#owner.takeBack(this, 'it was closed');
    await this.ended;
  }
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Ends the peer's rights now. */
  end(reason: string): void {
    clearTimeout(this.timer);
    this.closed = true;
    this.region.close();
    this.#end(reason);
  }
}

export class Exposures {
  readonly #queue: MemoryQueue;
  readonly #local: Local;
  readonly #exposer: Uint8Array;
  readonly #options: ExposuresOptions;
  readonly #quota: ExposedBytes | undefined;
  readonly #open = new Map<number, OpenExposure>();
  #lastId = 0;

  /** `exposer` identifies this side in handles. */
  constructor(
    queue: MemoryQueue,
    local: Local,
    exposer: Uint8Array,
    options: ExposuresOptions,
    quota: ExposedBytes | undefined,
  ) {
    this.#queue = queue;
    this.#local = local;
    this.#exposer = exposer;
    this.#options = options;
    this.#quota = quota;
  }

  get size(): number {
    return this.#open.size;
  }

  expose(buffer: Registrable, given: ExposeOptions): Exposure {
    const options = checkedOptions<CheckedExposeOptions>('expose', given, exposeRules);
    this.#check(options);
    const byteLength = lengthOf(buffer);
    this.#quota?.expose(byteLength);
    let region: MemoryRegion;
    try {
      region = this.#register(buffer, options);
    } catch (error) {
      this.#quota?.unexpose(byteLength);
      throw error;
    }
    const id = ++this.#lastId;
    const exposure = new OpenExposure(this, { exposer: this.#exposer, id }, region, options);
    this.#open.set(id, exposure);
    if (options.expiresMs !== undefined) this.#expireIn(exposure, options.expiresMs);
    return exposure;
  }

  /** Begins to revoke an exposure. The peer's rights have ended when `exposure.ended` resolves. */
  takeBack(exposure: OpenExposure, reason: string, withinMs = this.#options.revokeMs): void {
    if (exposure.closed || exposure.isLeaving) return;
    exposure.isLeaving = true;
    clearTimeout(exposure.timer);
    if (!exposure.isOpened) {
      this.#end(exposure, reason);
      return;
    }
    this.#queue.say({ kind: Kind.revoke, id: exposure.handle.id });
    const option = withinMs === this.#options.revokeMs ? 'option revokeMs' : 'half of expiresMs';
    const late = `${reason}, and the peer did not answer in ${withinMs} ms (${option})`;
    exposure.timer = setTimeout(() => this.#end(exposure, late), withinMs);
  }

  /** Returns the reason why the message breaks the rules, or undefined when it is valid. */
  onMessage(message: Required<Message>): string | undefined {
    const exposure = this.#open.get(message.id);
    if (message.kind === Kind.open) {
      this.#answer(exposure, message.id);
      return undefined;
    }
    // The exposure ended while the message was on its way.
    if (exposure === undefined) return undefined;
    if (message.kind === Kind.written) return this.#written(exposure, message);
    if (!exposure.isLeaving) return 'has released memory that was not revoked';
    this.#end(exposure, 'it was closed');
    return undefined;
  }

  /** Ends all exposures after the queue pair has ended, when the peer can no longer reach the memory. */
  end(reason: string): void {
    for (const exposure of [...this.#open.values()]) this.#end(exposure, reason);
  }

  #check({ read, write, atomic, onWritten }: CheckedExposeOptions): void {
    if (this.#queue.ended !== undefined)
      throw refusal(Status.UNAVAILABLE, `expose: remote memory: ${this.#queue.ended}`);
    if (!read && !write && !atomic)
      throw refusal(Status.INVALID_ARGUMENT, 'expose: give at least one right: read, write or atomic');
    if (onWritten !== undefined && !write)
      throw refusal(Status.INVALID_ARGUMENT, 'expose: onWritten needs the right to write');
    const { exposuresMax } = this.#options;
    if (this.#open.size >= exposuresMax || this.#lastId === idMax) {
      const text = `expose: this peer has ${this.#open.size} exposures already (option exposuresMax)`;
      throw refusal(Status.RESOURCE_EXHAUSTED, text);
    }
    const missing = atomic ? this.#queue.device.whyNot('atomics') : undefined;
    if (missing !== undefined) throw refusal(Status.UNIMPLEMENTED, `expose: atomic: ${missing}`);
  }

  #register(buffer: Registrable, { read, write, atomic }: CheckedExposeOptions): MemoryRegion {
    const access =
      (read ? Access.remoteRead : 0) |
      (write ? Access.remoteWrite | Access.localWrite : 0) |
      (atomic ? Access.remoteAtomic | Access.localWrite : 0);
    if ((access & Access.localWrite) !== 0) this.#checkPages(buffer);
    const region = this.#queue.pd.regMr(buffer, access);
    if (!(region.bytes.buffer instanceof SharedArrayBuffer)) this.#local.owns(region.bytes.buffer);
    if (!atomic || region.addr % atomicBytes === 0) return region;
    region.close();
    throw new RangeError(`expose: memory for atomics must begin at a multiple of ${atomicBytes} bytes`);
  }

  /**
   * Throws for memory that cannot be taken from a peer. On shared memory the CPU of the peer writes the bytes
   * itself. A peer may be stopped in the middle of a write, and not finish the write in time. When the peer
   * runs again, it completes the write, unless the pages were replaced in the meantime. Pages can be replaced
   * only in memory of the device.
   */
  #checkPages(buffer: Registrable): void {
    const memory = ArrayBuffer.isView(buffer) ? buffer.buffer : buffer;
    const { device } = this.#queue;
    if (!device.capabilities.peersKeepAccess || this.#local.isOwn(memory)) return;
    // the memory will be moved
    if (!(memory instanceof SharedArrayBuffer) && !this.#queue.isAllocated(memory)) return;
    const text =
      'expose: over shared memory, memory that the peer may write must be of alloc() of the same PeerMemory, or an ArrayBuffer that can be moved: no other memory can be taken from a peer that is stopped while it writes';
    throw refusal(Status.FAILED_PRECONDITION, text);
  }

  /**
   * The peer is asked to stop early enough that it can answer before the rights expire. The rights end at
   * their expiry in any case.
   */
  #expireIn(exposure: OpenExposure, limitMs: number): void {
    const withinMs = Math.min(this.#options.revokeMs, Math.ceil(limitMs / 2));
    const reason = `its ${limitMs} ms were over`;
    exposure.timer = setTimeout(() => this.takeBack(exposure, reason, withinMs), limitMs - withinMs);
    exposure.timer.unref();
  }

  #answer(exposure: OpenExposure | undefined, id: number): void {
    if (exposure === undefined || exposure.isLeaving) {
      this.#queue.say({ kind: Kind.gone, id });
      return;
    }
    exposure.isOpened = true;
    const { region, rights } = exposure;
    const { addr, byteLength, rkey } = region;
    this.#queue.say({ kind: Kind.opened, id, rights, position: addr, byteLength, value: rkey });
  }

  #written(exposure: OpenExposure, { position, byteLength, value }: Required<Message>): string | undefined {
    if ((exposure.rights & Right.write) === 0) return 'says that it has written memory that it may not write';
    // The application may have transferred the bytes, and a SharedArrayBuffer may have grown. The device
    // still has the region as it was registered.
    if (position + byteLength > exposure.region.byteLength)
      return 'says that it has written beyond the end of the memory';
    const { onWritten } = exposure;
    if (onWritten !== undefined)
      guardedInRoot('the function `onWritten`', () =>
        onWritten({ offset: position, byteLength, immediate: value }),
      );
    return undefined;
  }

  #end(exposure: OpenExposure, reason: string): void {
    if (exposure.closed) return;
    this.#open.delete(exposure.handle.id);
    exposure.end(reason);
    this.#quota?.unexpose(exposure.region.byteLength);
  }
}

function rightsOf({ read, write, atomic }: CheckedExposeOptions): number {
  return (read ? Right.read : 0) | (write ? Right.write : 0) | (atomic ? Right.atomic : 0);
}

function lengthOf(buffer: Registrable): number {
  const { byteLength } = Object(buffer) as { byteLength?: unknown };
  if (typeof byteLength === 'number') return byteLength;
  throw new TypeError(
    'expose(buffer): takes an ArrayBuffer, a SharedArrayBuffer or a view of one, such as the `bytes` of alloc()',
  );
}
