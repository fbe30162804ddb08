/** Queue pairs: connecting, posting, state. */
import type { NativeVerbsDevice } from '../native/verbs-device.ts';
import { type RecvBatch, recvRows, type SendBatch, sendRows } from './batches.ts';
import type { OpenCompletionQueue } from './completion-queue.ts';
import { type QpState, states } from './constants.ts';
import { checkedGid, errorOf, granted, VerbsError } from './errors.ts';
import { Resource } from './resource.ts';

/** A queue pair (`struct ibv_qp`). See ibv_create_qp(3). */
export interface QueuePair extends Disposable {
  readonly name: string;
  /** Its number, as completions have it. */
  readonly qpNum: number;
  /** INIT when it is made, RTS once it is connected, ERR after the first error. See ibv_query_qp(3). */
  readonly state: QpState;
  /**
   * Why it went to ERR, when neither this side nor a request with an error completion caused that; else ''.
   */
  readonly error: string;
  /**
   * What the peer's `connect` or `accept` needs: at most 512 bytes, to be sent there over any channel. Valid
   * from the beginning; receives may be posted before.
   */
  readonly address: Uint8Array;
  /**
   * Connects to the queue pair with that address: INIT to RTR to RTS (ibv_modify_qp(3)). For the side that
   * was made with `role: 'connect'`; the other one calls `accept`, and both do it in any order. Resolves in
   * RTS. Rejects with code `refused` when the peer cannot be reached; the queue pair is in ERR then. A UD
   * queue pair has no peer: it connects to an empty address. `listenerAddress` makes the address of a program
   * that listens by rdma_cm.
   */
  connect(address: Uint8Array): Promise<void>;
  /** Does the same on the side that was made with `role: 'accept'`. */
  accept(address: Uint8Array): Promise<void>;
  /**
   * Posts all requests of the batch, in order and with one doorbell. Throws, with nothing posted, when one of
   * them is wrong or the send queue has no room for all. The batch can be used again at once; the memory that
   * it names belongs to the queue pair until the request has completed. See ibv_post_send(3).
   */
  post(batch: SendBatch): void;
  /** Posts all receives of the batch, in the same way. See ibv_post_recv(3). */
  postRecv(batch: RecvBatch): void;
  /** Number of requests that the send queue has room for. */
  readonly sendRoom: number;
  /** Number of receives that the receive queue has room for. */
  readonly recvRoom: number;
  /**
   * Moves to another state where the device can (`Device.whyNot`): `SQD` starts no further send, `RTS` goes
   * on from SQD or SQE, `RESET` drops what is posted without completions, `INIT` after it can connect again,
   * `ERR` as `toError`. Throws with code `refused` otherwise. See ibv_modify_qp(3).
   */
  modify(state: 'SQD' | 'RTS' | 'RESET' | 'INIT' | 'ERR'): void;
  /** UD: receives the datagrams to that group, too; 16 bytes. See ibv_attach_mcast(3). */
  joinMulticast(group: Uint8Array): void;
  /** Receives them no longer. See ibv_detach_mcast(3). */
  leaveMulticast(group: Uint8Array): void;
  /** Moves to ERR: all outstanding requests complete with `wr_flush_err`. See ibv_modify_qp(3). */
  toError(): void;
  readonly closed: boolean;
  /** Closes the queue pair; outstanding requests have no completion any more. See ibv_destroy_qp(3). */
  close(): void;
}

/** Where to dial, when the address does not say it, and the words with which both sides begin. */
export interface Way {
  /** A host, with its port; or the path of a unix socket. */
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly words?: Uint8Array | undefined;
}

/**
 * How long a connection attempt waits where the completion queue is full of completions that nobody polls.
 */
const fullQueueMs = 5;

export class OpenQueuePair extends Resource implements QueuePair {
  readonly qpNum: number;
  readonly #native: NativeVerbsDevice;
  readonly #number: number;
  readonly #cq: OpenCompletionQueue;
  readonly #role: 'connect' | 'accept';

  constructor(
    native: NativeVerbsDevice,
    device: string,
    { number, qpNum }: { readonly number: number; readonly qpNum: number },
    cq: OpenCompletionQueue,
    role: 'connect' | 'accept',
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
  /** Does `connect` or `accept`, whichever its role is, in a way that the sideband of a session knows. */
  joinBy(way: Way, address: Uint8Array): Promise<void> {
    return this.#join(this.#role, address, way);
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
  }

  #stateNow(): QpState {
    this.check();
    return states[this.#native.state(this.#number)]!;
  }

  modify(state: 'SQD' | 'RTS' | 'RESET' | 'INIT' | 'ERR'): void {
    this.check();
    const number = states.indexOf(state);
    if (!['SQD', 'RTS', 'RESET', 'INIT', 'ERR'].includes(state))
      throw new TypeError(`modify(state): ${String(state)} is none of SQD, RTS, RESET, INIT, ERR`);
    if (state === 'ERR') {
      this.toError();
      return;
    }
    const refusal = this.#native.modify(this.#number, number);
    if (refusal !== undefined) throw errorOf(`modify ${this.name} to ${state}`, refusal);
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
    while (this.#stateNow() === 'RTR') {
      if (!this.#cq.drive()) await new Promise((resolve) => setTimeout(resolve, fullQueueMs));
      else if (this.#stateNow() === 'RTR') await this.#cq.ready();
    }
    if (this.#stateNow() === 'ERR') {
      const why = this.error === '' ? 'the connection broke at once' : this.error;
      throw new VerbsError('refused', `${call} of ${this.name}: ${why}`);
    }
  }

  protected override release(): void {
    this.#native.closeQp(this.#number);
  }
}
