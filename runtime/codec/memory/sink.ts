/**
 * Where an encoder writes: memory that the caller owns, and a list of holes for the `bytes` values that are
 * left out of it. A sink is reused for one message after another by runtime/boundary; generated encoders fill
 * it. No allocation after construction, except one DataView per memory when a message has floats.
 */

/**
 * `bytes` values that one encoding leaves out at most; further ones are copied. Two pieces of an image for
 * each, and their lengths.
 */
export const holesMax = 32_767;
/** Of these have memory from the start. */
const holesUsual = 30;

const nothing = new Uint8Array(0);

export class Sink {
  /** The memory. Positions (`at`) count from its start. */
  bytes: Uint8Array = nothing;
  private floats: DataView | undefined;
  /**
   * `bytes` values of at least this length are left out of the memory. Infinity (the default): everything is
   * copied.
   */
  gatherBytes = Number.POSITIVE_INFINITY;
  /**
   * `bytes` values of at least this length begin on 64 bytes at the receiver, whatever their field says. At
   * most `gatherBytes`, or Infinity.
   */
  alignBytes = Number.POSITIVE_INFINITY;
  /**
   * Of the values that are left out, those below this length are left out for their place only, and will be
   * copied there.
   */
  apartBytes = 0;
  /** Total length of such values that `bound` has planned. */
  copied = 0;
  /** Total length of the values that `bound` has planned to leave out. */
  gathered = 0;
  /**
   * Holes that `bound` has planned; in a sink that leaves nothing out, values whose field says that they
   * should be.
   */
  planned = 0;
  /** `bound` has found messages nested more deeply than they may be; what it returns then means nothing. */
  tooDeep = false;
  /** Holes recorded by `encodeTo`: `holeAt[0 .. holes)` ascending, each with its value in `holeValue`. */
  holes = 0;
  /** Total length of the recorded holes' values. */
  held = 0;
  /** Position in the memory where the value belongs: in front of the byte at that position. */
  readonly holeAt: number[] = new Array<number>(holesUsual).fill(0);
  /** Whether it is left out for its place only. */
  readonly holeCopied: boolean[] = new Array<boolean>(holesUsual).fill(false);
  readonly holeValue: Uint8Array[] = new Array<Uint8Array>(holesUsual).fill(nothing);

  /** `encodeTo` has come to something for which there was no room. What it has written then means nothing. */
  full = false;

  /** The same memory, for floats; made when the first one is written. */
  get view(): DataView {
    this.floats ??= new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength);
    return this.floats;
  }

  /**
   * Which values are left out: those of `gatherBytes` to be sent from where they are, those of `alignBytes`
   * to begin on 64 bytes.
   */
  plan(gatherBytes: number, alignBytes: number): void {
    this.gatherBytes = Math.min(gatherBytes, alignBytes);
    this.alignBytes = alignBytes;
    this.apartBytes = gatherBytes;
  }

  /** Points at `memory` and forgets the last message. `gatherBytes` stays as it is. */
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
    // Drops the references: a sink lives as long as its channel, the values should not.
    for (let i = 0; i < this.holes; i++) this.holeValue[i] = nothing;
    this.holes = 0;
    this.full = false;
  }

  /** Records that `value` belongs at `at`. */
  hole(at: number, value: Uint8Array): void {
    this.holeAt[this.holes] = at;
    this.holeValue[this.holes] = value;
    this.holeCopied[this.holes] = value.length < this.apartBytes;
    this.holes++;
    this.held += value.length;
  }
}

/**
 * There is no room behind `at`: what should come there is left out. Returns `at`, for the writer that has
 * found out.
 */
export function noRoom(sink: Sink, at: number): number {
  sink.full = true;
  return at;
}
