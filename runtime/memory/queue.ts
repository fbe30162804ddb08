/**
 * The queue pair for remote memory of one peer: posts operations and messages in order, handles completions,
 * and keeps the credits of messages. Each peer has a device of its own, and therefore a protection domain of
 * its own. A key that is given to one peer cannot be used on the queue pair of another peer. link.ts uses it,
 * on its JS thread.
 */
import { stopInterval } from '../core/stop-timer.ts';
import type { NativeOpenOptions } from '../native/verbs-device.ts';
import { RecvBatch, SendBatch } from '../verbs/batches.ts';
import type { OpenCompletionQueue } from '../verbs/completion-queue.ts';
import { Completions } from '../verbs/completions.ts';
import { Access, SendFlags, statusName, WcStatus } from '../verbs/constants.ts';
import { type Device, isAllocated, openDeviceOf } from '../verbs/device.ts';
import type { MemoryRegion } from '../verbs/memory-region.ts';
import type { ProtectionDomain } from '../verbs/protection-domain.ts';
import type { OpenQueuePair, Way } from '../verbs/queue-pair.ts';
import {
  iterationBytes,
  memoryReceives,
  memorySends,
  operationsMax,
  requestBytesMin,
  reservedCredits,
} from './limits.ts';
import { Kind, type Message, memoryMessageBytes, readMessage, writeMessage } from './wire.ts';

/**
 * This text follows the error text about a refused access. The peer's application may have taken the memory
 * back in the meantime, and this side may have been too slow to notice it.
 */
const refusedAccess =
  '; the peer refuses access to memory that it has taken back, when operations take longer than its option revokeMs';

/**
 * The kind of a request, for its order. A device may begin a WRITE before an earlier READ or atomic is done,
 * and an atomic before an earlier READ, unless the later request is fenced.
 */
export type Order = 'read' | 'atomic' | 'write' | 'message';

/** A work request that an operation has added to a batch. */
export interface Posted {
  readonly bytes: number;
  readonly order: Order;
  /** Runs when the request has completed. */
  done(): void;
}

/** Reads, writes and atomics (operations.ts). Each of them takes one or several work requests. */
export interface Operation {
  readonly order: Order;
  /** Returns the reason why the operation must not continue, or undefined when it may. */
  refused(): Error | undefined;
  /**
   * Adds the operation's next request, with this number and these flags. `slot` is an offset in
   * `queue.control` that is reserved for the request. Returns undefined when the request has to wait for
   * memory or a credit.
   */
  add(batch: SendBatch, wrId: number, flags: number, slot: number): Posted | undefined;
  /** True when all requests of the operation have been added. */
  readonly isPosted: boolean;
  fail(error: Error): void;
}

export interface QueueOwner {
  onMessage(message: Required<Message>): void;
  /** Runs when the queue pair has ended while operations were still in progress. */
  onEnd(reason: string): void;
}

/** The numbers of receives begin here; the numbers of sends begin at 0. */
const receivesFrom = 2 ** 52;
const creditsPerMessage = memoryReceives / 2;
const pollMax = 64;

export class MemoryQueue {
  readonly device: Device;
  readonly pd: ProtectionDomain;
  /**
   * Memory for messages and for results of atomics: the slots of sends, followed by the slots of receives.
   */
  readonly control: MemoryRegion;
  readonly view: DataView;
  readonly #qp: OpenQueuePair;
  readonly #cq: OpenCompletionQueue;
  readonly #owner: QueueOwner;
  readonly #batch: SendBatch;
  readonly #receive = new RecvBatch(memoryReceives);
  readonly #completions = new Completions(pollMax);
  readonly #depth: number;
  readonly #posted: (Posted | undefined)[];
  /** Number of requests posted so far. */
  #sequence = 0;
  #outstanding = 0;
  /** Number of outstanding READs and of outstanding atomics. */
  readonly #pending = { read: 0, atomic: 0 };
  #messages: Message[] = [];
  readonly #operations = new Set<Operation>();
  #begun: Operation[] = [];
  #credits = memoryReceives;
  #owed = 0;
  #budget = iterationBytes;
  #isScheduled = false;
  #keepsAlive: NodeJS.Timeout | undefined;
  ended: string | undefined;

  /** Throws when the device refuses the queue pair. */
  constructor(given: NativeOpenOptions, role: 'connect' | 'accept', owner: QueueOwner) {
    this.#owner = owner;
    this.device = openDeviceOf(given.fabric, given);
    try {
      this.#depth = Math.min(memorySends, this.device.capabilities.maxQpWr);
      this.#batch = new SendBatch(this.#depth);
      this.#posted = new Array<Posted | undefined>(this.#depth);
      this.pd = this.device.allocPd();
      this.#cq = this.device.createCq(this.#depth + memoryReceives) as OpenCompletionQueue;
      const options = { type: 'rc', cq: this.#cq, role, recvWrMax: memoryReceives } as const;
      this.#qp = this.pd.createQp({ ...options, sendWrMax: this.#depth }) as OpenQueuePair;
      const slots = this.#depth + memoryReceives;
      this.control = this.pd.regMr(this.pd.allocBuffer(slots * memoryMessageBytes), Access.localWrite);
      const { buffer, byteOffset, byteLength } = this.control.bytes;
      this.view = new DataView(buffer, byteOffset, byteLength);
      for (let i = 0; i < memoryReceives; ++i) this.#addReceive(i);
      this.#qp.postRecv(this.#receive);
    } catch (error) {
      this.#release();
      throw error;
    }
  }

  get address(): Uint8Array {
    return this.#qp.address;
  }
  /** Returns whether this library has allocated `memory`, for any device. */
  isAllocated(memory: ArrayBuffer): boolean {
    return isAllocated(this.device, memory);
  }
  get busy(): boolean {
    return this.#operations.size > 0;
  }
  /** Whether the device has refused to connect the queue pair. */
  get isRefused(): boolean {
    return this.ended !== undefined || this.#qp.state === 'ERR';
  }
  get hasCredit(): boolean {
    return this.#credits > reservedCredits;
  }

  /**
   * Connects, and then handles completions until the end. Rejects when the queue pair cannot be connected.
   */
  async join(way: Way, peer: Uint8Array): Promise<void> {
    await this.#qp.joinBy(way, peer);
    if (this.ended !== undefined) throw new Error(this.ended);
    void this.#run();
  }

  /** Sends a message as soon as it has a credit. */
  say(message: Message): void {
    if (this.ended !== undefined) return;
    this.#messages.push(message);
    this.#schedule();
  }

  /**
   * Begins an operation. Operations that begin in the same iteration of the event loop are posted together.
   */
  begin(operation: Operation): string | undefined {
    if (this.#operations.size >= operationsMax) return `${operationsMax} operations wait already`;
    this.#operations.add(operation);
    this.#begun.push(operation);
    this.#keepsAlive ??= setInterval(() => undefined, 2 ** 31 - 1);
    this.#schedule();
    return undefined;
  }
  /** Removes an operation that has ended. */
  finish(operation: Operation): void {
    this.#operations.delete(operation);
    if (this.#operations.size > 0) return;
    stopInterval(this.#keepsAlive);
    this.#keepsAlive = undefined;
  }

  /** Writes a message to its slot, counts its credit, and adds it to the batch. */
  addMessage(batch: SendBatch, wrId: number, flags: number, slot: number, message: Message): Posted {
    --this.#credits;
    writeMessage(this.view, slot, message, this.#owed);
    this.#owed = 0;
    batch.send(wrId, flags).sge(this.control, slot, memoryMessageBytes);
    return { bytes: 0, order: 'message', done: () => undefined };
  }

  /** Ends the queue pair. When this returns, no request of either side moves a byte any more. */
  end(reason: string): void {
    if (this.ended !== undefined) return;
    this.ended = reason;
    this.#release();
    stopInterval(this.#keepsAlive);
    this.#owner.onEnd(reason);
  }
  /** Fails the operations that have not ended. Call it after `end`. */
  failAll(error: (operation: Operation) => Error): void {
    for (const each of [...this.#operations]) each.fail(error(each));
    this.#operations.clear();
  }

  #release(): void {
    // The queue pair is closed first, so that no request can reach the memory of a closed region.
    (this.#qp as OpenQueuePair | undefined)?.close();
    (this.control as MemoryRegion | undefined)?.close();
    (this.#cq as OpenCompletionQueue | undefined)?.close();
    (this.pd as ProtectionDomain | undefined)?.close();
    this.device.close();
  }

  async #run(): Promise<void> {
    try {
      for (;;) {
        this.#poll();
        if (this.ended !== undefined) return;
        await this.#cq.wait(false, false);
      }
    } catch (error) {
      this.end((error as Error).message);
    }
  }

  #schedule(): void {
    if (this.#isScheduled || this.ended !== undefined) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.ended !== undefined) return;
    // Handle received messages first, because the peer may have revoked memory.
    this.#poll();
    if (this.ended !== undefined) return;
    const batch = this.#batch.clear();
    const room = Math.min(this.#depth - this.#outstanding, this.#qp.sendRoom);
    this.#addMessages(batch, room);
    this.#addOperations(batch, room);
    if (batch.length === 0) return;
    try {
      this.#qp.post(batch);
    } catch (error) {
      this.end((error as Error).message);
      return;
    }
    this.#poll();
  }

  #addMessages(batch: SendBatch, room: number): void {
    let sent = 0;
    for (const message of this.#messages) {
      const free = message.kind === Kind.credit ? this.#credits > 0 : this.hasCredit;
      if (batch.length === room || !free) break;
      this.#count(this.addMessage(batch, this.#sequence, SendFlags.signaled, this.#slot, message));
      ++sent;
    }
    if (sent > 0) this.#messages.splice(0, sent);
  }

  #addOperations(batch: SendBatch, room: number): void {
    let ended = 0;
    for (const operation of this.#begun) {
      const error = operation.refused();
      if (error !== undefined) operation.fail(error);
      else if (!this.#addRequests(operation, batch, room)) break;
      ++ended;
    }
    if (ended > 0) this.#begun.splice(0, ended);
  }

  /** Returns whether all requests of the operation have been added. */
  #addRequests(operation: Operation, batch: SendBatch, room: number): boolean {
    while (!operation.isPosted) {
      if (batch.length === room) return false;
      if (this.#budget <= 0) return false;
      const posted = operation.add(batch, this.#sequence, this.#flags(operation.order), this.#slot);
      if (posted === undefined) return operation.isPosted; // This is the case when the operation has failed.
      this.#count(posted);
    }
    return true;
  }

  /**
   * Counts bytes of this iteration of the event loop. When they reach the limit, posting continues in the
   * next iteration.
   */
  #spend(bytes: number): void {
    if (this.#budget === iterationBytes) {
      setImmediate(() => {
        this.#budget = iterationBytes;
        this.#flush();
      });
    }
    this.#budget -= Math.max(bytes, requestBytesMin);
  }

  #flags(order: Order): number {
    const { read, atomic } = this.#pending;
    const waits = (order === 'write' && read + atomic > 0) || (order === 'atomic' && read > 0);
    return SendFlags.signaled | (waits ? SendFlags.fence : 0);
  }
  get #slot(): number {
    return (this.#sequence % this.#depth) * memoryMessageBytes;
  }

  #count(posted: Posted): void {
    this.#posted[this.#sequence % this.#depth] = posted;
    ++this.#sequence;
    ++this.#outstanding;
    this.#spend(posted.bytes);
    if (posted.order === 'read' || posted.order === 'atomic') ++this.#pending[posted.order];
  }

  #poll(): void {
    const found = this.#completions;
    const count = this.#cq.poll(found);
    for (let i = 0; i < count && this.ended === undefined; ++i) {
      const status = found.status(i);
      const wrId = found.wrId(i);
      if (status !== WcStatus.success) {
        const why = this.#qp.error;
        const hint = status === WcStatus.remAccessErr ? refusedAccess : '';
        this.end(`the queue pair has failed: ${why === '' ? statusName(status) : why}${hint}`);
      } else if (wrId >= receivesFrom) this.#received(wrId - receivesFrom, found.byteLength(i));
      else this.#sent(wrId);
    }
    if (count > 0 && this.#begun.length + this.#messages.length > 0) this.#schedule();
  }

  #sent(wrId: number): void {
    const index = wrId % this.#depth;
    const posted = this.#posted[index];
    this.#posted[index] = undefined;
    --this.#outstanding;
    if (posted === undefined) return;
    if (posted.order === 'read' || posted.order === 'atomic') --this.#pending[posted.order];
    posted.done();
  }

  #received(index: number, byteLength: number): void {
    if (byteLength !== memoryMessageBytes) {
      this.end(`the peer has sent a message of ${byteLength} bytes`);
      return;
    }
    const read = readMessage(this.view, (this.#depth + index) * memoryMessageBytes);
    if (typeof read === 'string') {
      this.end(`the peer has sent ${read}`);
      return;
    }
    this.#credits += read.credits;
    if (this.#credits > memoryReceives) {
      this.end(`the peer has returned more credits than the ${memoryReceives} that there are`);
      return;
    }
    this.#receive.clear();
    this.#addReceive(index);
    this.#qp.postRecv(this.#receive);
    if (++this.#owed === creditsPerMessage) {
      // This message must not wait behind messages that have no credit.
      this.#messages.unshift({ kind: Kind.credit, id: 0 });
      this.#schedule();
    }
    if (read.message.kind !== Kind.credit) this.#owner.onMessage(read.message);
  }

  #addReceive(index: number): void {
    const at = (this.#depth + index) * memoryMessageBytes;
    this.#receive.recv(receivesFrom + index, this.control, at, memoryMessageBytes);
  }
}
