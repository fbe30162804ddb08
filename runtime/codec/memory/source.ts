/**
 * The reader of decoders: memory with one or more encoded messages, and the rule by which a `bytes` field
 * becomes a copy or a view. runtime/boundary reuses it for one message after another; generated decoders read
 * from it.
 */
import { CodecError } from '../error.ts';
import { type AlignedMessage, noGap } from './aligned-message.ts';
import { isShared } from './shared-memory.ts';

/** Allocates the copies of received values: returns a copy of [start, end) of `from`. */
export type CopyOut = (from: Uint8Array, start: number, end: number) => Uint8Array;

const nothing = new Uint8Array(0);

export class Source {
  /** The memory. Positions count from its start. */
  bytes: Uint8Array = nothing;
  private fixed: DataView | undefined;
  /**
   * `bytes` values of at least this length become views of the memory; shorter values are copied. Infinity
   * (the default) always copies.
   */
  leaseBytes = Number.POSITIVE_INFINITY;
  /**
   * Another process may change the memory while it is read, so code that reads a byte twice must copy it
   * first.
   */
  shared = false;
  /**
   * Number of views of the memory that have been given out since `reset`. When it is 0, no decoded message
   * refers to the memory.
   */
  leases = 0;
  /**
   * End of the current segment when another segment follows. The bytes behind this position come from a
   * different place in the memory.
   */
  gapAt = noGap;
  /** Allocates copies of `bytes` values. Undefined gives each copy a memory of its own. */
  copyOut: CopyOut | undefined;
  private aligned: AlignedMessage | undefined;
  /** Position behind the last value that a primitive has read. It is the primitive's second result. */
  at = 0;
  /** Number and wire type of the field that is being read, as an int32. `nextTag` sets it. */
  tag = 0;
  /** Second result of `readStart`: the end of the content whose length it has read. */
  stop = 0;
  /** The last map with number keys that was found to have gaps. */
  sparse: object | undefined;
  /** Start and name of the outermost message, for error texts. */
  origin = 0;
  typeName = '';

  /** A view of `bytes`, for fixed-width fields; created when the first such field is read. */
  get view(): DataView {
    this.fixed ??= new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength);
    return this.fixed;
  }

  /**
   * Points the source at `memory`. `leaseBytes` stays unchanged. A caller that knows whether the memory is
   * `shared` passes it, so that `reset` need not ask the array for its buffer, which takes a call into V8.
   */
  reset(memory: Uint8Array, shared?: boolean): void {
    if (this.bytes !== memory) {
      this.bytes = memory;
      this.fixed = undefined;
      this.shared = shared ?? isShared(memory.buffer);
    }
    this.leases = 0;
    this.sparse = undefined;
    this.aligned = undefined;
    this.gapAt = noGap;
  }

  /** Starts to read a message in the aligned layout, at position 0. */
  open(aligned: AlignedMessage): void {
    this.leases = 0;
    this.sparse = undefined;
    this.aligned = aligned;
    aligned.enter(this);
  }

  /** Sets the memory of the current segment, as if it contained all segments. AlignedMessage calls it. */
  show(bytes: Uint8Array, gapAt: number): void {
    this.bytes = bytes;
    this.fixed = undefined;
    this.gapAt = gapAt;
  }

  /**
   * Moves on to the next segments. Call it after skipping a value in [start, end) that contains `gapAt` or
   * begins behind it.
   */
  cross(start: number, end: number): void {
    if (this.aligned === undefined) return;
    if (this.missed(start)) this.fail(start, 'a segment of the message ends in the middle of a value');
    this.aligned.moveTo(this, end);
  }

  /** Returns whether a segment has ended before `at` without being noticed. */
  private missed(at: number): boolean {
    return this.gapAt < at && this.gapAt !== noGap;
  }

  /** Moves back to an earlier position. */
  back(at: number): void {
    this.aligned?.moveBack(this, at);
  }

  /** Checks at the end that no segment boundary was overlooked. */
  close(end: number): void {
    if (this.aligned !== undefined && this.missed(end))
      this.fail(end, 'a segment of the message ends in the middle of a value');
  }

  /** Returns a copy of [start, end) in memory of its own. */
  slice(start: number, end: number): Uint8Array {
    return this.aligned === undefined ? this.bytes.slice(start, end) : this.aligned.copy(this, start, end);
  }

  /** Returns the bytes of [start, end); do not keep them. */
  part(start: number, end: number): Uint8Array {
    return this.aligned === undefined ? this.bytes.subarray(start, end) : this.aligned.copy(this, start, end);
  }

  /**
   * Returns the `bytes` value in [start, end). A value of at least `leaseBytes` is a view of the memory, and
   * a shorter value is a copy.
   */
  value(start: number, end: number): Uint8Array {
    if (this.aligned === undefined || end < this.gapAt) return this.valueHere(start, end);
    return this.valueAcross(start, end);
  }

  private valueHere(start: number, end: number): Uint8Array {
    const { bytes } = this;
    if (end - start >= this.leaseBytes) {
      this.leases++;
      return bytes.subarray(start, end);
    }
    return this.copyOut === undefined ? bytes.slice(start, end) : this.copyOut(bytes, start, end);
  }

  private valueAcross(start: number, end: number): Uint8Array {
    if (start >= this.gapAt) this.cross(start, start);
    // A value contains a boundary only when a peer has cut it into segments.
    const value = this.missed(end) ? this.slice(start, end) : this.valueHere(start, end);
    if (end >= this.gapAt) this.cross(start, end);
    return value;
  }

  /** Throws an error for the message. */
  fail(at: number, reason: string): never {
    throw new CodecError(this.typeName, reason, at - this.origin);
  }
}
