/**
 * Manages the memory that the peer has exposed and this side has opened. It checks each operation, and lets
 * the peer revoke memory. After the peer has revoked memory, no request for that memory is posted, and the
 * peer gets an answer when the posted requests have completed. A link owns this object and uses it on its JS
 * thread.
 */
import { Status } from '../core/errors/status.ts';
import { keepingAlive } from '../core/keep-alive.ts';
import { lost, refusal, takenBack } from './failures.ts';
import type { Local } from './local.ts';
import type { Remote } from './memory-type.ts';
import { Atomic, type AtomicOptions, type Target, Transfer, type TransferOptions } from './operations.ts';
import type { MemoryQueue } from './queue.ts';
import { Kind, type Message, Right } from './wire.ts';

const atomicBytes = 8;

class OpenRemote implements Remote, Target {
  readonly id: number;
  readonly address: number;
  readonly key: number;
  readonly byteLength: number;
  readonly rights: Remote['rights'];
  isClosed = false;
  readonly #queue: MemoryQueue;
  readonly #local: Local;
  readonly #onIdle: () => void;
  #outstanding = 0;

  constructor(queue: MemoryQueue, local: Local, opened: Required<Message>, onIdle: () => void) {
    this.#queue = queue;
    this.#local = local;
    this.#onIdle = onIdle;
    this.id = opened.id;
    this.address = opened.position;
    this.key = opened.value;
    this.byteLength = opened.byteLength;
    const has = (right: number): boolean => (opened.rights & right) !== 0;
    this.rights = { read: has(Right.read), write: has(Right.write), atomic: has(Right.atomic) };
  }

  get closed(): boolean {
    return this.isClosed || this.#queue.ended !== undefined;
  }

  async read(into: ArrayBufferView, offset = 0): Promise<void> {
    await this.#transfer('read', { kind: 'read', bytes: bytesOf('read(into)', into), offset });
  }
  async write(from: ArrayBufferView, offset = 0): Promise<void> {
    await this.#transfer('write', { kind: 'write', bytes: bytesOf('write(from)', from), offset });
  }
  async writeWithImmediate(from: ArrayBufferView, offset: number, immediate: number): Promise<void> {
    if (immediate >>> 0 !== immediate)
      throw new RangeError(`writeWithImmediate(immediate): ${immediate} is no integer of 32 bits`);
    const bytes = bytesOf('writeWithImmediate(from)', from);
    await this.#transfer('write', { kind: 'write', bytes, offset, immediate });
  }
  async fetchAdd(offset: number, add: bigint): Promise<bigint> {
    checkBigint('fetchAdd(add)', add);
    return this.#atomic({ kind: 'fetchAdd', offset, add });
  }
  async compareAndSwap(offset: number, compare: bigint, swap: bigint): Promise<bigint> {
    checkBigint('compareAndSwap(compare)', compare);
    checkBigint('compareAndSwap(swap)', swap);
    return this.#atomic({ kind: 'compareAndSwap', offset, compare, swap });
  }

  posted(): void {
    ++this.#outstanding;
  }
  completed(): void {
    if (--this.#outstanding === 0 && this.isClosed) this.#onIdle();
  }
  /** Handles the peer's request to revoke the memory. */
  revoke(): void {
    this.isClosed = true;
    if (this.#outstanding === 0) this.#onIdle();
  }

  async #transfer(right: 'read' | 'write', given: TransferOptions): Promise<void> {
    this.#check(given.kind, right, given.offset, given.bytes.byteLength);
    if (given.bytes.byteLength === 0 && given.immediate === undefined) return;
    const transfer = new Transfer(this.#queue, this.#local, this, given);
    this.#begin(transfer);
    await transfer.promise;
  }

  #atomic(given: AtomicOptions): Promise<bigint> {
    this.#check(given.kind, 'atomic', given.offset, atomicBytes);
    if ((this.address + given.offset) % atomicBytes !== 0)
      throw new RangeError(`${given.kind}(offset): ${given.offset} is no multiple of ${atomicBytes}`);
    const missing = this.#queue.device.whyNot('atomics');
    if (missing !== undefined) throw refusal(Status.UNIMPLEMENTED, `${given.kind}: ${missing}`);
    const atomic = new Atomic(this.#queue, this, given);
    this.#begin(atomic);
    return atomic.promise;
  }

  #check(call: string, right: keyof Remote['rights'], offset: number, byteLength: number): void {
    if (this.#queue.ended !== undefined)
      throw refusal(Status.UNAVAILABLE, `remote memory: ${this.#queue.ended}`);
    if (this.isClosed) throw takenBack(false);
    if (!this.rights[right])
      throw refusal(
        Status.PERMISSION_DENIED,
        `${call}: the peer has exposed this memory without the right to ${right}`,
      );
    if (!Number.isInteger(offset) || offset < 0)
      throw new RangeError(`${call}(offset): ${String(offset)} is no integer from 0 on`);
    if (offset > this.byteLength || byteLength > this.byteLength - offset) {
      const text = `${call}: ${byteLength} bytes at offset ${offset} do not lie in the memory of the peer, which has ${this.byteLength}`;
      throw refusal(Status.OUT_OF_RANGE, text);
    }
  }

  #begin(operation: Transfer | Atomic): void {
    const why = this.#queue.begin(operation);
    if (why !== undefined) throw refusal(Status.RESOURCE_EXHAUSTED, `remote memory: ${why}`);
  }
}

function bytesOf(where: string, view: ArrayBufferView): Uint8Array {
  if (!ArrayBuffer.isView(view))
    throw new TypeError(`${where}: takes a view of memory, such as a Uint8Array or the \`bytes\` of alloc()`);
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}
function checkBigint(where: string, value: bigint): void {
  if (typeof value !== 'bigint') throw new TypeError(`${where}: takes a bigint, which is cut to 64 bits`);
}

interface Opening {
  readonly promise: Promise<Remote>;
  readonly settle: (result: Remote | Error) => void;
}

export class Remotes {
  readonly #queue: MemoryQueue;
  readonly #local: Local;
  readonly #opening = new Map<number, Opening>();
  readonly #open = new Map<number, OpenRemote>();

  constructor(queue: MemoryQueue, local: Local) {
    this.#queue = queue;
    this.#local = local;
  }

  open(id: number): Promise<Remote> {
    const known = this.#open.get(id);
    if (known !== undefined) return Promise.resolve(known);
    const begun = this.#opening.get(id);
    if (begun !== undefined) return begun.promise;
    let settle!: Opening['settle'];
    const answered = new Promise<Remote>((resolve, reject) => {
      settle = (result) => (result instanceof Error ? reject(result) : resolve(result));
    });
    const promise = keepingAlive(answered);
    this.#opening.set(id, { promise, settle });
    this.#queue.say({ kind: Kind.open, id });
    return promise;
  }

  /** Returns the reason why the message breaks the rules, or undefined when it is valid. */
  onMessage(message: Required<Message>): string | undefined {
    const { kind, id } = message;
    if (kind === Kind.revoke) {
      const remote = this.#open.get(id);
      if (remote === undefined) return 'has taken back memory that this side has not opened';
      remote.revoke();
      return undefined;
    }
    const opening = this.#opening.get(id);
    if (opening === undefined) return 'has answered a question that this side has not asked';
    this.#opening.delete(id);
    if (kind === Kind.gone) {
      const text = 'open(handle): the peer has taken this memory back, or its time is over';
      opening.settle(refusal(Status.NOT_FOUND, text));
      return undefined;
    }
    const remote = new OpenRemote(this.#queue, this.#local, message, () => {
      this.#open.delete(id);
      this.#queue.say({ kind: Kind.revoked, id });
    });
    this.#open.set(id, remote);
    opening.settle(remote);
    return undefined;
  }

  end(reason: string): void {
    for (const { settle } of this.#opening.values()) settle(lost(reason));
    this.#opening.clear();
    this.#open.clear();
  }
}
