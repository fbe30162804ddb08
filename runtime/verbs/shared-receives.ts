/**
 * Shared receive queues, which give several queue pairs the same receives.
 */
import type { NativeVerbsDevice } from '../native/verbs-device.ts';
import { type RecvBatch, recvRows } from './batches.ts';
import { checkedInteger, errorOf } from './errors.ts';
import { Resource } from './resource.ts';

/** A shared receive queue (`struct ibv_srq`). See ibv_create_srq(3). */
export interface SharedReceiveQueue extends Disposable {
  readonly name: string;
  /** Posts all receives of the batch. When it throws, it has posted no receive. See ibv_post_srq_recv(3). */
  postRecv(batch: RecvBatch): void;
  /** Number of further receives that the queue has room for. */
  readonly room: number;
  /**
   * Requests one event `srq_limit_reached` of the device as soon as fewer receives than this number are
   * posted. 0 cancels the request. It works if the device supports it (`Device.whyNot('srqLimit')`). See
   * ibv_modify_srq(3).
   */
  armLimit(receives: number): void;
  readonly closed: boolean;
  /** Closes the queue (ibv_destroy_srq(3)). Its queue pairs continue with the posted receives. */
  close(): void;
}

const limitMax = 1 << 20;

export class OpenSharedReceiveQueue extends Resource implements SharedReceiveQueue {
  readonly number: number;
  readonly #native: NativeVerbsDevice;

  constructor(native: NativeVerbsDevice, device: string, number: number) {
    super(`shared receive queue ${number} of ${device}`);
    this.#native = native;
    this.number = number;
  }
  postRecv(batch: RecvBatch): void {
    const rows = recvRows(batch);
    this.check();
    const refusal = this.#native.postShared(this.number, rows, batch.length);
    if (refusal !== undefined) throw errorOf(`postRecv to ${this.name}`, refusal);
  }
  get room(): number {
    this.check();
    return this.#native.srqRoom(this.number);
  }
  armLimit(receives: number): void {
    this.check();
    checkedInteger('armLimit(receives)', receives, 0, limitMax);
    const refusal = this.#native.armLimit(this.number, receives);
    if (refusal !== undefined) throw errorOf(`armLimit of ${this.name}`, refusal);
  }
  isOf(native: NativeVerbsDevice): boolean {
    return native === this.#native;
  }
  protected override release(): void {
    this.#native.closeSrq(this.number);
  }
}
