/**
 * The operations on memory of the peer. A transfer is cut into chunks; an atomic is one request. remotes.ts
 * checks bounds and rights first, because a device answers a wrong request by ending the queue pair. queue.ts
 * posts the requests, on the JS thread of the link.
 */
import { Status } from '../core/errors/status.ts';
import type { SendBatch } from '../verbs/batches.ts';
import { noStaging, refusal, takenBack } from './failures.ts';
import { chunkBytes, stagingSlots } from './limits.ts';
import type { Local, Place } from './local.ts';
import type { MemoryQueue, Operation, Order, Posted } from './queue.ts';
import { Kind } from './wire.ts';

/** Memory of the peer, as operations use it. */
export interface Target {
  readonly id: number;
  readonly address: number;
  readonly key: number;
  /** True when the peer revokes the memory, so that no further request may be posted. */
  readonly isClosed: boolean;
  /** Counts a request. The peer cannot end the rights before the request has completed. */
  posted(): void;
  completed(): void;
}

abstract class Base<Result> implements Operation {
  abstract readonly order: Order;
  abstract readonly isPosted: boolean;
  readonly promise: Promise<Result>;
  protected readonly queue: MemoryQueue;
  protected readonly target: Target;
  protected failed = false;
  #resolve!: (result: Result) => void;
  #reject!: (error: Error) => void;

  constructor(queue: MemoryQueue, target: Target) {
    this.queue = queue;
    this.target = target;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }
  protected abstract readonly began: boolean;

  refused(): Error | undefined {
    return this.target.isClosed ? takenBack(this.began) : undefined;
  }
  fail(error: Error): void {
    this.failed = true;
    this.queue.finish(this);
    this.#reject(error);
  }
  protected resolve(result: Result): void {
    this.queue.finish(this);
    this.#resolve(result);
  }
  abstract add(batch: SendBatch, wrId: number, flags: number, slot: number): Posted | undefined;
}

export interface TransferOptions {
  readonly kind: 'read' | 'write';
  readonly bytes: Uint8Array;
  readonly offset: number;
  readonly immediate?: number | undefined;
}

/** A READ or WRITE of any size, and the message that follows a WRITE with immediate. */
export class Transfer extends Base<void> {
  readonly order: Order;
  readonly #local: Local;
  readonly #given: TransferOptions;
  readonly #length: number;
  #posted = 0;
  #outstanding = 0;
  #saysWritten: boolean;

  constructor(queue: MemoryQueue, local: Local, target: Target, given: TransferOptions) {
    super(queue, target);
    this.order = given.kind;
    this.#local = local;
    this.#given = given;
    this.#length = given.bytes.byteLength;
    this.#saysWritten = given.immediate !== undefined;
  }

  get isPosted(): boolean {
    return this.failed || (this.#posted === this.#length && !this.#saysWritten);
  }
  protected get began(): boolean {
    return this.#posted > 0;
  }

  add(batch: SendBatch, wrId: number, flags: number, slot: number): Posted | undefined {
    const { kind, bytes, offset, immediate: value = 0 } = this.#given;
    if (bytes.byteLength !== this.#length) {
      this.fail(
        refusal(Status.FAILED_PRECONDITION, `${kind}: the buffer was transferred or resized meanwhile`),
      );
      return undefined;
    }
    if (this.#posted === this.#length) {
      if (!this.queue.hasCredit) return undefined;
      this.#saysWritten = false;
      const message = {
        kind: Kind.written,
        id: this.target.id,
        position: offset,
        byteLength: this.#length,
        value,
      };
      this.queue.addMessage(batch, wrId, flags, slot, message);
      return this.#count('message', 0, () => undefined);
    }
    const inPlace = kind === 'write' || this.#local.readsInPlace ? this.#local.find(bytes) : undefined;
    let staged: Place | undefined;
    try {
      if (inPlace === undefined) staged = this.#local.take();
    } catch (error) {
      // This error must be handled here, because requests are added in a microtask, which has no caller that
      // could handle it.
      this.fail(noStaging(kind, error));
      return undefined;
    }
    const place = inPlace ?? staged;
    if (place === undefined) return undefined;
    const begin = this.#posted;
    const count = Math.min(this.#length - begin, inPlace === undefined ? stagingSlots.bytes : chunkBytes);
    const at = inPlace === undefined ? place.offset : place.offset + begin;
    const { address, key } = this.target;
    if (kind === 'write') {
      if (staged !== undefined) staged.region.bytes.set(bytes.subarray(begin, begin + count), at);
      batch.write(wrId, address + offset + begin, key, flags);
    } else batch.read(wrId, address + offset + begin, key, flags);
    batch.sge(place.region, at, count);
    this.#posted += count;
    return this.#count(kind, count, () => {
      if (staged === undefined) return;
      const came = kind === 'read' && !this.failed && bytes.byteLength === this.#length;
      if (came) bytes.set(staged.region.bytes.subarray(at, at + count), begin);
      this.#local.giveBack(staged);
    });
  }

  #count(order: Order, bytes: number, then: () => void): Posted {
    this.target.posted();
    ++this.#outstanding;
    const done = (): void => {
      --this.#outstanding;
      then();
      this.target.completed();
      if (this.isPosted && this.#outstanding === 0 && !this.failed) this.resolve();
    };
    return { bytes, order, done };
  }
}

export type AtomicOptions =
  | { readonly kind: 'fetchAdd'; readonly offset: number; readonly add: bigint }
  | {
      readonly kind: 'compareAndSwap';
      readonly offset: number;
      readonly compare: bigint;
      readonly swap: bigint;
    };

const resultBytes = 8;

export class Atomic extends Base<bigint> {
  readonly order = 'atomic';
  readonly #given: AtomicOptions;
  #isAdded = false;

  constructor(queue: MemoryQueue, target: Target, given: AtomicOptions) {
    super(queue, target);
    this.#given = given;
  }

  get isPosted(): boolean {
    return this.#isAdded || this.failed;
  }
  protected get began(): boolean {
    return this.#isAdded;
  }

  add(batch: SendBatch, wrId: number, flags: number, slot: number): Posted {
    const given = this.#given;
    const { key } = this.target;
    const at = this.target.address + given.offset;
    if (given.kind === 'fetchAdd') batch.fetchAdd(wrId, at, key, given.add, flags);
    else batch.compareSwap(wrId, at, key, given.compare, given.swap, flags);
    batch.sge(this.queue.control, slot, resultBytes);
    this.#isAdded = true;
    this.target.posted();
    const done = (): void => {
      this.target.completed();
      // Devices have the byte order of this host, which is little-endian on all hosts that the package
      // supports.
      if (!this.failed) this.resolve(this.queue.view.getBigUint64(slot, true));
    };
    return { bytes: resultBytes, order: 'atomic', done };
  }
}
