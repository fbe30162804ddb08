/**
 * The records from which requests are posted. Applications create and fill them, and native code reads them.
 */

import { RecvRow, SendRow, SgeRow } from '../native/verbs-device.ts';
import type { AddressHandle } from './address-handle.ts';
import { WrOpcode } from './constants.ts';
import { checkedInteger } from './errors.ts';
import type { MemoryRegion } from './memory-region.ts';
import type { MemoryWindow } from './memory-window.ts';
import { stamp, stampWords, unstamp } from './stamps.ts';

const capacityMax = 16_384;
const sgesMax = 64;

/** Returns the stamped records of a batch, for the queue pair. Throws for a value that is not a batch. */
export let sendRows: (batch: SendBatch) => Float64Array;
export let recvRows: (batch: RecvBatch) => Float64Array;

/** Checks the range of a memory region, and returns the address at which the range begins. */
function addressIn(where: string, mr: MemoryRegion, offset: number, byteLength: number): number {
  const { byteLength: whole } = mr;
  if (!(Number.isInteger(offset) && Number.isInteger(byteLength) && offset >= 0 && byteLength >= 0)) {
    throw new RangeError(`${where}: offset ${offset} and length ${byteLength} must be integers from 0 on`);
  }
  if (offset > whole || byteLength > whole - offset) {
    throw new RangeError(
      `${where}: ${byteLength} bytes at offset ${offset} do not lie in ${mr.name}, which has ${whole}`,
    );
  }
  return mr.addr + offset;
}

/** The part of a region that a window shows. */
export interface BindOptions {
  /** Default 0. */
  offset?: number;
  /** Default: the rest of the region. */
  byteLength?: number;
  /** Bits of `SendFlags`. Default 0. */
  flags?: number;
}

/**
 * Requests for a send queue (`struct ibv_send_wr`). `QueuePair.post` can post the same batch any number of
 * times, and no object is created for a request. When a queue pair gets the same batch again, it does not
 * repeat its checks, as long as the batch has not changed and nothing was closed. Posting the batch again
 * therefore costs less. A request begins with the method of its operation. `sge` then adds the memory that
 * the request sends from or reads into:
 *
 *     batch.clear().write(wrId, remote.addr, remote.rkey, SendFlags.signaled).sge(mr, 0, 32);
 *
 * `wrId` is a number that the application chooses, an integer from 0 to 2^53 - 1. The completion returns it.
 * `flags` are bits of `SendFlags`. The values are checked when the batch is posted. See ibv_post_send(3).
 */
export class SendBatch {
  /** The largest number of requests. */
  readonly capacity: number;
  /** The largest number of scatter/gather entries of a request. */
  readonly sges: number;
  readonly #rows: Float64Array;
  readonly #columns: number;
  #length = 0;

  /**
   * Creates an empty batch. `capacity` is 1 to 16,384 requests; `sges` is 1 to 64 entries in each request.
   */
  constructor(capacity: number, sges = 1) {
    this.capacity = checkedInteger('new SendBatch(capacity)', capacity, 1, capacityMax);
    this.sges = checkedInteger('new SendBatch(capacity, sges)', sges, 1, sgesMax);
    this.#columns = SendRow.header + sges * SgeRow.words;
    this.#rows = new Float64Array(capacity * this.#columns + stampWords);
  }

  /** Number of requests in the batch. */
  get length(): number {
    return this.#length;
  }
  /** Removes all requests. */
  clear(): this {
    this.#length = 0;
    unstamp(this.#rows);
    return this;
  }

  /** Begins a SEND, whose message goes to a receive of the peer (IBV_WR_SEND). */
  send(wrId: number, flags = 0): this {
    return this.#begin(WrOpcode.send, wrId, flags, 0, 0, 0);
  }
  /**
   * Begins a SEND that also brings the number `imm` of 32 bits (IBV_WR_SEND_WITH_IMM). Some devices do not
   * support it.
   */
  sendWithImm(wrId: number, imm: number, flags = 0): this {
    return this.#begin(WrOpcode.sendWithImm, wrId, flags, 0, 0, imm);
  }
  /**
   * Begins a SEND that also invalidates the receiver's window with the key `rkey` (IBV_WR_SEND_WITH_INV). It
   * needs `capabilities.windows`, as the next two methods do.
   */
  sendWithInv(wrId: number, rkey: number, flags = 0): this {
    this.#begin(WrOpcode.sendWithInv, wrId, flags, 0, 0, 0);
    this.#rows[this.#lastRow('SendBatch') + SendRow.invalidateRkey] = rkey;
    return this;
  }
  /** Invalidates a window of this side that is bound on this queue pair (IBV_WR_LOCAL_INV). */
  localInv(wrId: number, rkey: number, flags = 0): this {
    this.#begin(WrOpcode.localInv, wrId, flags, 0, 0, 0);
    this.#rows[this.#lastRow('SendBatch') + SendRow.invalidateRkey] = rkey;
    return this;
  }
  /**
   * Binds a window to `byteLength` bytes of the region from `offset` on (IBV_WR_BIND_MW, type 2). The peer of
   * this queue pair gets the rights `access` to these bytes: `Access.remoteRead`, `remoteWrite`,
   * `remoteAtomic`. The region needs `Access.mwBind`. Posting gives the window its key (`mw.rkey`), which a
   * later message of this queue pair may carry.
   */
  bindMw(
    wrId: number,
    mw: MemoryWindow,
    mr: MemoryRegion,
    access: number,
    { offset = 0, byteLength = mr.byteLength - offset, flags = 0 }: BindOptions = {},
  ): this {
    const addr = addressIn('SendBatch.bindMw', mr, offset, byteLength);
    this.#begin(WrOpcode.bindMw, wrId, flags, addr, mr.lkey, 0);
    const row = this.#lastRow('SendBatch.bindMw');
    this.#rows[row + SendRow.ah] = mw.number;
    this.#rows[row + SendRow.swapLow] = access;
    return this.#operand(SendRow.compareHigh, SendRow.compareLow, BigInt(byteLength));
  }
  /**
   * Begins a WRITE into the peer's memory (IBV_WR_RDMA_WRITE). `remoteAddr` is the peer's `mr.addr` plus an
   * offset; `rkey` is the peer's `mr.rkey`.
   */
  write(wrId: number, remoteAddr: number, rkey: number, flags = 0): this {
    return this.#begin(WrOpcode.rdmaWrite, wrId, flags, remoteAddr, rkey, 0);
  }
  /**
   * Begins a WRITE that also completes a receive of the peer, with the number `imm` of 32 bits
   * (IBV_WR_RDMA_WRITE_WITH_IMM). It needs `capabilities.immediate`.
   */
  writeWithImm(wrId: number, remoteAddr: number, rkey: number, imm: number, flags = 0): this {
    return this.#begin(WrOpcode.rdmaWriteWithImm, wrId, flags, remoteAddr, rkey, imm);
  }
  /** Begins a READ of the peer's memory (IBV_WR_RDMA_READ) into memory with `Access.localWrite`. */
  read(wrId: number, remoteAddr: number, rkey: number, flags = 0): this {
    return this.#begin(WrOpcode.rdmaRead, wrId, flags, remoteAddr, rkey, 0);
  }

  /**
   * Begins an atomic addition to the 8 bytes at `remoteAddr`, a multiple of 8 (IBV_WR_ATOMIC_FETCH_AND_ADD).
   * The request's one entry, of 8 bytes, gets the previous value. The peer's region needs
   * `Access.remoteAtomic`. Such operations are atomic only against other remote atomics, and not against the
   * peer's own CPU.
   */
  fetchAdd(wrId: number, remoteAddr: number, rkey: number, add: bigint, flags = 0): this {
    this.#begin(WrOpcode.fetchAndAdd, wrId, flags, remoteAddr, rkey, 0);
    return this.#operand(SendRow.compareHigh, SendRow.compareLow, add);
  }
  /**
   * Begins an atomic swap: writes `swap` if the 8 bytes at `remoteAddr` are equal to `compare`
   * (IBV_WR_ATOMIC_CMP_AND_SWP). The rest is as for `fetchAdd`.
   */
  compareSwap(
    wrId: number,
    remoteAddr: number,
    rkey: number,
    compare: bigint,
    swap: bigint,
    flags = 0,
  ): this {
    this.#begin(WrOpcode.compareAndSwap, wrId, flags, remoteAddr, rkey, 0);
    this.#operand(SendRow.compareHigh, SendRow.compareLow, compare);
    return this.#operand(SendRow.swapHigh, SendRow.swapLow, swap);
  }

  /**
   * Sets the destination of the last request, which is a datagram: that queue pair at the port that `ah`
   * names.
   */
  to(ah: AddressHandle, remoteQpn: number, remoteQkey: number): this {
    const row = this.#lastRow('SendBatch.to');
    unstamp(this.#rows);
    this.#rows[row + SendRow.ah] = ah.number;
    this.#rows[row + SendRow.remoteQpn] = remoteQpn;
    this.#rows[row + SendRow.remoteQkey] = remoteQkey;
    return this;
  }

  /** Adds memory to the last request: `byteLength` bytes from `offset` on (`struct ibv_sge`). */
  sge(mr: MemoryRegion, offset = 0, byteLength = mr.byteLength - offset): this {
    const row = this.#lastRow('SendBatch.sge');
    const sges = this.#rows[row + SendRow.sges]!;
    if (sges === this.sges) {
      throw new RangeError(
        `SendBatch.sge: the request has ${sges} entries, and the batch has no room for more`,
      );
    }
    const entry = row + SendRow.header + sges * SgeRow.words;
    this.#rows[entry + SgeRow.addr] = addressIn('SendBatch.sge', mr, offset, byteLength);
    this.#rows[entry + SgeRow.length] = byteLength;
    this.#rows[entry + SgeRow.lkey] = mr.lkey;
    this.#rows[row + SendRow.sges] = sges + 1;
    unstamp(this.#rows);
    return this;
  }

  #lastRow(where: string): number {
    if (this.#length === 0) throw new RangeError(`${where}: the batch has no request yet`);
    return (this.#length - 1) * this.#columns;
  }

  #operand(high: number, low: number, value: bigint): this {
    if (typeof value !== 'bigint') throw new TypeError('SendBatch: an operand of an atomic is a bigint');
    const row = this.#lastRow('SendBatch');
    const bits = BigInt.asUintN(64, value);
    this.#rows[row + high] = Number(bits >> 32n);
    this.#rows[row + low] = Number(bits & 0xffff_ffffn);
    return this;
  }

  #begin(opcode: number, wrId: number, flags: number, remoteAddr: number, rkey: number, imm: number): this {
    if (this.#length === this.capacity) {
      throw new RangeError(
        `SendBatch: all ${this.capacity} requests are in use; post the batch and clear it`,
      );
    }
    const row = this.#length * this.#columns;
    const rows = this.#rows;
    rows[row + SendRow.wrId] = wrId;
    rows[row + SendRow.opcode] = opcode;
    rows[row + SendRow.flags] = flags;
    rows[row + SendRow.sges] = 0;
    rows[row + SendRow.remoteAddr] = remoteAddr;
    rows[row + SendRow.rkey] = rkey;
    rows[row + SendRow.imm] = imm;
    rows[row + SendRow.invalidateRkey] = 0;
    rows[row + SendRow.ah] = 0;
    ++this.#length;
    unstamp(this.#rows);
    return this;
  }

  static {
    sendRows = (batch) => {
      if (typeof batch !== 'object' || batch === null || !(#rows in batch))
        throw new TypeError('post(batch): takes a SendBatch');
      stamp(batch.#rows);
      return batch.#rows;
    };
  }
}

/**
 * Receives (`struct ibv_recv_wr`), which `postRecv` can post any number of times. Each receive has memory,
 * registered with `Access.localWrite`, that must be at least as long as the message that arrives in it. See
 * ibv_post_recv(3).
 */
export class RecvBatch {
  /** The largest number of receives. */
  readonly capacity: number;
  readonly #rows: Float64Array;
  #length = 0;

  /** Creates an empty batch. `capacity` is 1 to 16,384 receives. */
  constructor(capacity: number) {
    this.capacity = checkedInteger('new RecvBatch(capacity)', capacity, 1, capacityMax);
    this.#rows = new Float64Array(capacity * RecvRow.words + stampWords);
  }

  /** Number of receives in the batch. */
  get length(): number {
    return this.#length;
  }
  /** Removes all receives. */
  clear(): this {
    this.#length = 0;
    unstamp(this.#rows);
    return this;
  }
  /** Adds a receive into `byteLength` bytes of the region from `offset` on. */
  recv(wrId: number, mr: MemoryRegion, offset = 0, byteLength = mr.byteLength - offset): this {
    if (this.#length === this.capacity) {
      throw new RangeError(
        `RecvBatch: all ${this.capacity} receives are in use; post the batch and clear it`,
      );
    }
    const row = this.#length * RecvRow.words;
    this.#rows[row + RecvRow.addr] = addressIn('RecvBatch.recv', mr, offset, byteLength);
    this.#rows[row + RecvRow.wrId] = wrId;
    this.#rows[row + RecvRow.length] = byteLength;
    this.#rows[row + RecvRow.lkey] = mr.lkey;
    ++this.#length;
    unstamp(this.#rows);
    return this;
  }

  static {
    recvRows = (batch) => {
      if (typeof batch !== 'object' || batch === null || !(#rows in batch))
        throw new TypeError('postRecv(batch): takes a RecvBatch');
      stamp(batch.#rows);
      return batch.#rows;
    };
  }
}
