/**
 * The writer of encoders: memory that the caller owns, and a list of out-of-line `bytes` values, which are
 * not copied into that memory. runtime/boundary reuses a writer for one message after another; generated
 * encoders fill it. It allocates nothing after construction, except one DataView per memory when a message
 * has floats.
 */

/**
 * Maximum number of out-of-line `bytes` values in one message; further values are copied. In the aligned
 * layout each out-of-line value needs two segments and their lengths.
 */
export const outOfLineMax = 32_767;
/** Number of out-of-line values for which the writer has memory from the start. */
const outOfLineUsual = 30;

const nothing = new Uint8Array(0);

export class Writer {
  /** The memory. Positions (`at`) count from its start. */
  bytes: Uint8Array = nothing;
  private floats: DataView | undefined;
  /**
   * `bytes` values of at least this length become out-of-line values. Infinity (the default) copies
   * everything.
   */
  gatherBytes = Number.POSITIVE_INFINITY;
  /**
   * `bytes` values of at least this length begin on a multiple of 64 bytes at the receiver, independent of
   * their field's threshold. Either Infinity or at least `gatherBytes`.
   */
  alignBytes = Number.POSITIVE_INFINITY;
  /**
   * Out-of-line values below this length are out of line only for their alignment; they are copied to their
   * aligned position.
   */
  apartBytes = 0;
  /** Total length of the values planned by `bound` that are copied in this way. */
  copied = 0;
  /** Total length of all out-of-line values planned by `bound`. */
  gathered = 0;
  /**
   * Number of out-of-line values planned by `bound`. In a writer without out-of-line values, it is the number
   * of values whose field requests to be out of line.
   */
  planned = 0;
  /** True when `bound` has found messages that are nested too deeply, which makes its result meaningless. */
  tooDeep = false;
  /**
   * Number of out-of-line values recorded by `encodeTo`. `outOfLineAt[0 .. outOfLine)` is ascending, and
   * `outOfLineValue` has the value of each.
   */
  outOfLine = 0;
  /** Total length of the recorded out-of-line values. */
  held = 0;
  /** Position of each out-of-line value. The value belongs in front of the byte at that position. */
  readonly outOfLineAt: number[] = new Array<number>(outOfLineUsual).fill(0);
  /**
   * Whether each value will be copied, because it is out of line only for its alignment and too small to be
   * sent in place.
   */
  readonly outOfLineCopied: boolean[] = new Array<boolean>(outOfLineUsual).fill(false);
  readonly outOfLineValue: Uint8Array[] = new Array<Uint8Array>(outOfLineUsual).fill(nothing);

  /** `encodeTo` did not have enough room. Everything that it has written is then meaningless. */
  full = false;

  /** A view of `bytes`, for floats; created when the first float is written. */
  get view(): DataView {
    this.floats ??= new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength);
    return this.floats;
  }

  /**
   * Sets the thresholds. Values of at least `gatherBytes` are sent in place; values of at least `alignBytes`
   * begin on a multiple of 64 bytes.
   */
  plan(gatherBytes: number, alignBytes: number): void {
    this.gatherBytes = Math.min(gatherBytes, alignBytes);
    this.alignBytes = alignBytes;
    this.apartBytes = gatherBytes;
  }

  /** Points the writer at `memory` and forgets the last message. `gatherBytes` stays unchanged. */
  reset(memory: Uint8Array): void {
    if (this.bytes !== memory) {
      this.bytes = memory;
      this.floats = undefined;
    }
    this.gathered = 0;
    this.copied = 0;
    this.planned = 0;
    this.tooDeep = false;
    this.held = 0;
    // The references are dropped, because a writer lives as long as its channel and the values should not.
    for (let i = 0; i < this.outOfLine; i++) this.outOfLineValue[i] = nothing;
    this.outOfLine = 0;
    this.full = false;
  }

  /** Records that `value` belongs at position `at`. */
  addOutOfLine(at: number, value: Uint8Array): void {
    this.outOfLineAt[this.outOfLine] = at;
    this.outOfLineValue[this.outOfLine] = value;
    this.outOfLineCopied[this.outOfLine] = value.length < this.apartBytes;
    this.outOfLine++;
    this.held += value.length;
  }
}

/**
 * Records that the memory behind `at` is too small. Returns `at`, for the function that has noticed the lack
 * of room.
 */
export function noRoom(writer: Writer, at: number): number {
  writer.full = true;
  return at;
}
