/**
 * Queue pairs: connects them, posts requests, and reports their state.
 */
import { keepingAlive } from '../core/keep-alive.ts';
import type { NativeVerbsDevice } from '../native/verbs-device.ts';
import { type RecvBatch, recvRows, type SendBatch, sendRows } from './batches.ts';
import type { OpenCompletionQueue } from './completion-queue.ts';
import { type QpState, states } from './constants.ts';
import { checkedGid, errorOf, granted, VerbsError } from './errors.ts';
import { Resource } from './resource.ts';

/** A queue pair (`struct ibv_qp`). See ibv_create_qp(3). */
export interface QueuePair extends Disposable {
  readonly name: string;
  /** The number of the queue pair, as completions name it. */
  readonly qpNum: number;
  /**
   * INIT when the queue pair is made, RTS once it is connected, and ERR after the first error. See
   * ibv_query_qp(3).
   */
  readonly state: QpState;
  /**
   * The reason why the queue pair went to ERR. It is '' when this side or a request with an error completion
   * caused the error.
   */
  readonly error: string;
  /**
   * The address that the peer's `connect` or `accept` needs. It has at most 512 bytes; send it to the peer
   * over any channel. The address is valid from the beginning, and receives may be posted before the queue
   * pair is connected.
   */
  readonly address: Uint8Array;
  /**
   * Connects to the queue pair with the given address, which moves the state from INIT to RTR to RTS
   * (ibv_modify_qp(3)). It is for the side that was made with `role: 'connect'`. The other side calls
   * `accept`; the two calls may come in any order. Resolves when the state is RTS. Rejects with code
   * `refused` when the peer cannot be reached; the queue pair is then in ERR. A UD queue pair has no peer, so
   * it connects to an empty address. `listenerAddress` makes the address of a program that listens by
   * rdma_cm.
   */
  connect(address: Uint8Array): Promise<void>;
  /** Does the same as `connect`, on the side that was made with `role: 'accept'`. */
  accept(address: Uint8Array): Promise<void>;
  /**
   * Takes the first step of a queue pair that was made with the option `steps`: from RESET to INIT, where
   * receives may be posted. See ibv_modify_qp(3).
   */
  toInit(): void;
  /**
   * Takes the second step: from INIT to RTR, with the address of the peer. The queue pair receives from now
   * on. UD has no peer, so it takes no address. On an RDMA device the call looks for the peer's port and may
   * take a second. Throws an error with code `refused` when the peer cannot be reached; the queue pair is
   * then in ERR.
   */
  toRtr(address?: Uint8Array): void;
  /** Takes the third step: from RTR to RTS, where the queue pair also sends. */
  toRts(): void;
  /**
   * Posts all requests of the batch, in order and with one doorbell. When a request is wrong or the send
   * queue has no room for all requests, it throws and posts nothing. The batch can be used again at once. The
   * memory that a request names belongs to the queue pair until the request has completed. See
   * ibv_post_send(3).
   */
  post(batch: SendBatch): void;
  /**
   * Posts all receives of the batch, in order. When a receive is wrong or the receive queue has no room for
   * all receives, it throws and posts nothing. The batch can be used again at once. The memory that a receive
   * names belongs to the queue pair until the receive has completed. See ibv_post_recv(3).
   */
  postRecv(batch: RecvBatch): void;
  /** Number of further requests that the send queue has room for. */
  readonly sendRoom: number;
  /** Number of further receives that the receive queue has room for. */
  readonly recvRoom: number;
  /**
   * Moves to another state, if the device supports that (`Device.whyNot`). `SQD` starts no further send.
   * `RTS` continues from SQD or SQE; some devices can do so only after the event `sq_drained`. `RESET` drops
   * posted requests without completions. `INIT` after RESET allows connecting again. `ERR` does what
   * `toError` does. Throws an error with code `refused` otherwise. See ibv_modify_qp(3).
   */
  modify(state: 'SQD' | 'RTS' | 'RESET' | 'INIT' | 'ERR'): void;
  /**
   * Makes this UD queue pair also receive the datagrams to a group. A group is a GID of 16 bytes. See
   * ibv_attach_mcast(3).
   */
  joinMulticast(group: Uint8Array): void;
  /** Stops receiving the datagrams to that group. See ibv_detach_mcast(3). */
  leaveMulticast(group: Uint8Array): void;
  /** Moves to ERR. All outstanding requests complete with `wr_flush_err`. See ibv_modify_qp(3). */
  toError(): void;
  readonly closed: boolean;
  /** Closes the queue pair. Outstanding requests no longer get completions. See ibv_destroy_qp(3). */
  close(): void;
}

/**
 * The destination when the address does not contain it, and the identifying words with which both sides
 * begin.
 */
export interface Way {
  /** A host, together with its port, or the path of a unix socket. */
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly words?: Uint8Array | undefined;
}

/**
 * Interval in milliseconds at which a connection attempt checks again while the completion queue is full of
 * completions that are not polled.
 */
const fullQueueMs = 5;

export class OpenQueuePair extends Resource implements QueuePair {
  readonly qpNum: number;
  readonly #native: NativeVerbsDevice;
  readonly #number: number;
  readonly #cq: OpenCompletionQueue;
  readonly #role: 'connect' | 'accept' | 'steps';
  /** Wakes `connect` or `accept` while they wait for the peer. */
  #onChange: (() => void) | undefined;

  constructor(
    native: NativeVerbsDevice,
    device: string,
    { number, qpNum }: { readonly number: number; readonly qpNum: number },
    cq: OpenCompletionQueue,
    role: 'connect' | 'accept' | 'steps',
  ) {
    super(`queue pair ${qpNum} of ${device}`);
    this.#native = native;
    this.#number = number;
    this.qpNum = qpNum;
    this.#cq = cq;
    this.#role = role;
  }

  get state(): QpState {
    return this.#stateNow();
  }
  get error(): string {
    this.check();
    return this.#native.error(this.#number);
  }
  get address(): Uint8Array {
    this.check();
    return granted(this.name, this.#native.address(this.#number));
  }
  get sendRoom(): number {
    this.check();
    return this.#native.room(this.#number, false);
  }
  get recvRoom(): number {
    this.check();
    return this.#native.room(this.#number, true);
  }

  connect(address: Uint8Array): Promise<void> {
    return this.#join('connect', address, {});
  }
  accept(address: Uint8Array): Promise<void> {
    return this.#join('accept', address, {});
  }
  /**
   * Calls `connect` or `accept`, as the role requires, with the destination that the session's sideband
   * connection knows.
   */
  joinBy(way: Way, address: Uint8Array): Promise<void> {
    return this.#join(this.#role === 'accept' ? 'accept' : 'connect', address, way);
  }

  toInit(): void {
    this.#step('toInit', 'RESET');
    const refusal = this.#native.modify(this.#number, states.indexOf('INIT'));
    if (refusal !== undefined) throw errorOf(`toInit of ${this.name}`, refusal);
  }
  toRtr(address: Uint8Array = new Uint8Array(0)): void {
    if (!(address instanceof Uint8Array)) throw new TypeError("toRtr(address): takes the peer's Uint8Array");
    this.#step('toRtr', 'INIT');
    const refusal = this.#native.connect(this.#number, address, undefined, undefined, undefined);
    if (refusal !== undefined) throw errorOf(`toRtr of ${this.name}`, refusal);
  }
  toRts(): void {
    this.#step('toRts', 'RTR');
    const refusal = this.#native.modify(this.#number, states.indexOf('RTS'));
    if (refusal !== undefined) throw errorOf(`toRts of ${this.name}`, refusal);
  }
  /** Checks that the queue pair takes single steps, and that this step begins in its current state. */
  #step(call: string, from: QpState): void {
    this.check();
    if (this.#role !== 'steps')
      throw new VerbsError('state', `${call} of ${this.name}: make it with the option steps, or connect it`);
    if (this.state !== from)
      throw new VerbsError('state', `${call} of ${this.name}: it is in ${this.state}, and not in ${from}`);
  }

  post(batch: SendBatch): void {
    const rows = sendRows(batch);
    this.check();
    const refusal = this.#native.postSend(this.#number, rows, batch.length, batch.sges);
    if (refusal !== undefined) throw errorOf(`post to ${this.name}`, refusal);
  }
  postRecv(batch: RecvBatch): void {
    const rows = recvRows(batch);
    this.check();
    const refusal = this.#native.postRecv(this.#number, rows, batch.length);
    if (refusal !== undefined) throw errorOf(`postRecv to ${this.name}`, refusal);
  }

  toError(): void {
    this.check();
    this.#native.toError(this.#number);
    this.#onChange?.();
  }

  #stateNow(): QpState {
    this.check();
    return states[this.#native.state(this.#number)]!;
  }

  modify(state: 'SQD' | 'RTS' | 'RESET' | 'INIT' | 'ERR'): void {
    this.check();
    const number = states.indexOf(state);
    if (!['SQD', 'RTS', 'RESET', 'INIT', 'ERR'].includes(state))
      throw new TypeError(
        `modify(state): ${String(state)} is not allowed; use one of SQD, RTS, RESET, INIT, ERR`,
      );
    if (state === 'ERR') {
      this.toError();
      return;
    }
    const refusal = this.#native.modify(this.#number, number);
    // Completions may have been taken from the device before it refused.
    this.#cq.noteKept();
    if (refusal !== undefined) throw errorOf(`modify ${this.name} to ${state}`, refusal);
    this.#onChange?.();
  }
  joinMulticast(group: Uint8Array): void {
    this.#multicast('joinMulticast', group, true);
  }
  leaveMulticast(group: Uint8Array): void {
    this.#multicast('leaveMulticast', group, false);
  }
  #multicast(call: string, group: Uint8Array, joins: boolean): void {
    this.check();
    checkedGid(`${call}(group)`, group);
    const refusal = this.#native.multicast(this.#number, group, joins);
    if (refusal !== undefined) throw errorOf(`${call} of ${this.name}`, refusal);
  }

  async #join(call: 'connect' | 'accept', address: Uint8Array, way: Way): Promise<void> {
    if (!(address instanceof Uint8Array))
      throw new TypeError(`${call}(address): takes the peer's Uint8Array`);
    this.check();
    if (this.#role === 'steps') {
      throw new VerbsError(
        'state',
        `${call} of ${this.name}: it was made with the option steps; call toInit, toRtr and toRts`,
      );
    }
    if (call !== this.#role) {
      throw new VerbsError(
        'state',
        `${call} of ${this.name}: it was made with role '${this.#role}'; one side connects, the other accepts`,
      );
    }
    if (this.state !== 'INIT')
      throw new VerbsError('state', `${call} of ${this.name}: it is in ${this.state}, and not in INIT`);
    const { host, port, words } = way;
    const refusal = this.#native.connect(this.#number, address, host, port, words);
    if (refusal !== undefined) throw errorOf(`${call} of ${this.name}`, refusal);
    await keepingAlive(this.#concluded());
    const state = this.#stateNow();
    if (state === 'ERR') {
      const why = this.error === '' ? 'the connection broke at once' : this.error;
      throw new VerbsError('refused', `${call} of ${this.name}: ${why}`);
    }
    if (state === 'RESET' || state === 'INIT')
      throw new VerbsError('state', `${call} of ${this.name}: it was moved to ${state} meanwhile`);
  }

  /**
   * Resolves when the attempt to connect is over. Rejects when this queue pair or its completion queue was
   * closed before.
   */
  async #concluded(): Promise<void> {
    while (this.#stateNow() === 'RTR') {
      this.#cq.check();
      if (!this.#cq.drive()) await new Promise((resolve) => setTimeout(resolve, fullQueueMs));
      else if (this.#stateNow() === 'RTR')
        await Promise.race([this.#cq.sleep(false, false), this.#changed()]);
    }
  }

  /** Resolves when this side closes or moves the queue pair. Its completion queue does not report that. */
  #changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#onChange = resolve;
    });
  }

  protected override release(): void {
    this.#native.closeQp(this.#number);
    this.#cq.noteKept();
    this.#onChange?.();
  }
}
