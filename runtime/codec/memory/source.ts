/**
 * What a decoder reads: memory with one or more encoded messages in it, and the rule for `bytes` fields (copy
 * or view). Reused for one message after another by runtime/boundary; generated decoders read it.
 */
import { CodecError } from '../error.ts';
import { type Image, noGap } from './image.ts';
import { isShared } from './shared-memory.ts';

/** Copies of received values: memory of the caller's choice for [start, end) of `from`. */
export type CopyOut = (from: Uint8Array, start: number, end: number) => Uint8Array;

const nothing = new Uint8Array(0);

export class Source {
  /** The memory. Positions count from its start. */
  bytes: Uint8Array = nothing;
  private fixed: DataView | undefined;
  /**
   * `bytes` fields of at least this length are views of the memory, shorter ones copies. Infinity (the
   * default): always copies.
   */
  leaseBytes = Number.POSITIVE_INFINITY;
  /**
   * Another process may change the memory while it is read: whoever looks twice at a byte looks at a copy.
   */
  shared = false;
  /** Views of the memory given out since `reset`: when 0, nothing of the decoded messages refers to it. */
  leases = 0;
  /** Where the piece ends that is being read, when another one follows: behind it `bytes` begin elsewhere. */
  gapAt = noGap;
  /** Where `bytes` values are copied to; undefined: each into memory of its own. */
  copyOut: CopyOut | undefined;
  private image: Image | undefined;
  /** Position behind what a primitive has just read: its second result. */
  at = 0;
  /** Of the field that is being read: number and wire type, as an int32. Set by `nextTag`. */
  tag = 0;
  /** Where the content ends of which `readStart` has just read the length: its second result. */
  stop = 0;
  /** The map with number keys that was last found to have gaps. */
  sparse: object | undefined;
  /** Where the outermost message starts, and its name: for errors. */
  origin = 0;
  typeName = '';

  /** The same memory, for fixed-width fields; made when the first one is read. */
  get view(): DataView {
    this.fixed ??= new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength);
    return this.fixed;
  }

  /**
   * Points at `memory`. `leaseBytes` stays as it is. `shared`: who knows need not have the buffer looked at,
   * which a typed array gives away by a call of V8's only.
   */
  reset(memory: Uint8Array, shared?: boolean): void {
    if (this.bytes !== memory) {
      this.bytes = memory;
      this.fixed = undefined;
      this.shared = shared ?? isShared(memory.buffer);
    }
    this.leases = 0;
    this.sparse = undefined;
    this.image = undefined;
    this.gapAt = noGap;
  }

  /** Reads a message in pieces, from position 0 on. */
  open(image: Image): void {
    this.leases = 0;
    this.sparse = undefined;
    this.image = image;
    image.enter(this);
  }

  /** For Image: the memory of the piece that is read now, as if it were that of all of them. */
  show(bytes: Uint8Array, gapAt: number): void {
    this.bytes = bytes;
    this.fixed = undefined;
    this.gapAt = gapAt;
  }

  /**
   * A value in [start, end) has been passed over that `gapAt` is in front of or in: the pieces behind it come
   * next.
   */
  cross(start: number, end: number): void {
    if (this.image === undefined) return;
    if (this.missed(start)) this.fail(start, 'a piece of the message ends in the middle of a value');
    this.image.moveTo(this, end);
  }

  /** A piece has ended before `at`, and nobody has noticed. */
  private missed(at: number): boolean {
    return this.gapAt < at && this.gapAt !== noGap;
  }

  /** Back to a position that has been passed over. */
  back(at: number): void {
    this.image?.moveBack(this, at);
  }

  /** All that has been read must have come from where it is: no piece is left over. */
  close(end: number): void {
    if (this.image !== undefined && this.missed(end))
      this.fail(end, 'a piece of the message ends in the middle of a value');
  }

  /** A copy of [start, end) in memory of its own. */
  slice(start: number, end: number): Uint8Array {
    return this.image === undefined ? this.bytes.slice(start, end) : this.image.copy(this, start, end);
  }

  /** The bytes of [start, end), which are not to be kept. */
  part(start: number, end: number): Uint8Array {
    return this.image === undefined ? this.bytes.subarray(start, end) : this.image.copy(this, start, end);
  }

  /** The `bytes` value in [start, end): a copy, or from `leaseBytes` on a view of the memory. */
  value(start: number, end: number): Uint8Array {
    if (this.image === undefined || end < this.gapAt) return this.valueHere(start, end);
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
    // Only a peer that cuts values into pieces sends one that has a boundary inside.
    const value = this.missed(end) ? this.slice(start, end) : this.valueHere(start, end);
    if (end >= this.gapAt) this.cross(start, end);
    return value;
  }

  /** Refuses the message. */
  fail(at: number, reason: string): never {
    throw new CodecError(this.typeName, reason, at - this.origin);
  }
}
