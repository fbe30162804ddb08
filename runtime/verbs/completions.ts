/**
 * The record into which completions are polled. Applications create it, and native code fills it.
 */
import { CompletionRow } from '../native/verbs-device.ts';
import { checkedInteger } from './errors.ts';

const capacityMax = 65_536;

/** Returns the entries to fill, for the completion queue. Throws for a value that is not a Completions. */
export let rowsToFill: (into: Completions) => Float64Array;
/** Sets how many entries have been filled, for the completion queue. */
export let setFilled: (into: Completions, length: number) => void;

/**
 * Room for completions (`struct ibv_wc`). Each poll can use the same room again, and no object is created for
 * a completion. Each method returns a field of completion `i`, from 0 to `length - 1`, and throws a
 * RangeError for any other `i`. See ibv_poll_cq(3).
 */
export class Completions {
  /** The largest number of completions that one poll returns. */
  readonly capacity: number;
  readonly #rows: Float64Array;
  #length = 0;

  /** Creates room for up to `capacity` completions of one poll. `capacity` is 1 to 65,536. */
  constructor(capacity: number) {
    this.capacity = checkedInteger('new Completions(capacity)', capacity, 1, capacityMax);
    this.#rows = new Float64Array(capacity * CompletionRow.words);
  }

  /** Number of completions that the last poll returned. */
  get length(): number {
    return this.#length;
  }

  /** Returns the `wrId` with which the request was posted. */
  wrId(i: number): number {
    return this.#field(i, CompletionRow.wrId);
  }
  /** `WcStatus.success`, or the error. After an error the queue pair is in ERR. */
  status(i: number): number {
    return this.#field(i, CompletionRow.status);
  }
  /** Returns the operation that has completed, as a value of `WcOpcode`. */
  opcode(i: number): number {
    return this.#field(i, CompletionRow.opcode);
  }
  /** Bits of `WcFlags`. */
  flags(i: number): number {
    return this.#field(i, CompletionRow.flags);
  }
  /** Returns the number of the queue pair (`QueuePair.qpNum`). */
  qpNum(i: number): number {
    return this.#field(i, CompletionRow.qpNum);
  }
  /**
   * Returns the number of bytes received, read or written, or 0 after an error. For a datagram the number
   * includes its header of 40 bytes.
   */
  byteLength(i: number): number {
    return this.#field(i, CompletionRow.bytes);
  }
  /** Returns the peer's immediate, a number of 32 bits. Returns 0 without `WcFlags.withImm`. */
  imm(i: number): number {
    return this.#field(i, CompletionRow.imm);
  }

  /**
   * Returns the key that a message has invalidated (`SendBatch.sendWithInv`). Returns 0 without
   * `WcFlags.withInv`.
   */
  invalidatedRkey(i: number): number {
    return this.#field(i, CompletionRow.invalidatedRkey);
  }
  /** Returns the number of the sender's queue pair, for a datagram. Returns 0 for other messages. */
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
