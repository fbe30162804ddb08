/** The record that completions are polled into. Made by applications, filled by native code. */
import { CompletionRow } from '../native/verbs-device.ts';
import { checkedInteger } from './errors.ts';

const capacityMax = 65_536;

/** For the completion queue: the rows to fill. Throws for what is no Completions. */
export let rowsToFill: (into: Completions) => Float64Array;
/** For the completion queue: how many rows have been filled. */
export let setFilled: (into: Completions, length: number) => void;

/**
 * Room for completions (`struct ibv_wc`), to be used again for each poll: no object is made for a completion.
 * Each method returns a field of completion `i`, from 0 to `length - 1`, and throws a RangeError for another
 * one. See ibv_poll_cq(3).
 */
export class Completions {
  /** The largest number of completions that one poll gives. */
  readonly capacity: number;
  readonly #rows: Float64Array;
  #length = 0;

  /** `capacity`: 1 to 65,536. */
  constructor(capacity: number) {
    this.capacity = checkedInteger('new Completions(capacity)', capacity, 1, capacityMax);
    this.#rows = new Float64Array(capacity * CompletionRow.words);
  }

  /** Number of completions of the last poll. */
  get length(): number {
    return this.#length;
  }

  /** The `wrId` that the request was posted with. */
  wrId(i: number): number {
    return this.#field(i, CompletionRow.wrId);
  }
  /** `WcStatus.success`, or what went wrong; after an error the queue pair is in ERR. */
  status(i: number): number {
    return this.#field(i, CompletionRow.status);
  }
  /** What the completion is about: a value of `WcOpcode`. */
  opcode(i: number): number {
    return this.#field(i, CompletionRow.opcode);
  }
  /** Bits of `WcFlags`. */
  flags(i: number): number {
    return this.#field(i, CompletionRow.flags);
  }
  /** The queue pair (`QueuePair.qpNum`). */
  qpNum(i: number): number {
    return this.#field(i, CompletionRow.qpNum);
  }
  /**
   * Number of bytes received, read or written; 0 after an error. A datagram counts its header of 40 bytes.
   */
  byteLength(i: number): number {
    return this.#field(i, CompletionRow.bytes);
  }
  /** The peer's immediate, a number of 32 bits; 0 without `WcFlags.withImm`. */
  imm(i: number): number {
    return this.#field(i, CompletionRow.imm);
  }

  /** The key that a message has invalidated (`SendBatch.sendWithInv`); 0 without `WcFlags.withInv`. */
  invalidatedRkey(i: number): number {
    return this.#field(i, CompletionRow.invalidatedRkey);
  }
  /** The sender's queue pair, for a datagram; else 0. */
  srcQp(i: number): number {
    return this.#field(i, CompletionRow.srcQp);
  }

  #field(i: number, column: number): number {
    if (i >>> 0 !== i || i >= this.#length) {
      throw new RangeError(`completion ${i}: the last poll gave ${this.#length} completions`);
    }
    return this.#rows[i * CompletionRow.words + column]!;
  }

  static {
    rowsToFill = (into) => {
      if (typeof into !== 'object' || into === null || !(#rows in into))
        throw new TypeError('poll(into): takes a Completions, which has room for them');
      into.#length = 0;
      return into.#rows;
    };
    setFilled = (into, length) => {
      into.#length = length;
    };
  }
}
