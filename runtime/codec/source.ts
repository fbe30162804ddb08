/**
 * What a decoder reads: memory with one or more encoded messages in it, and the rule for `bytes` fields (copy or view).
 * Reused for one message after another by runtime/call; generated decoders read it.
 */
import { CodecError } from './error.ts';

const nothing = new Uint8Array(0);

export class Source {
  /** The memory. Positions count from its start. */
  bytes: Uint8Array = nothing;
  private fixed: DataView | undefined;
  /** `bytes` fields of at least this length are views of the memory, shorter ones copies. Infinity (the default): always copies. */
  leaseBytes = Number.POSITIVE_INFINITY;
  /** Views of the memory given out since `reset`: when 0, nothing of the decoded messages refers to it. */
  leases = 0;
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

  /** Points at `memory`. `leaseBytes` stays as it is. */
  reset(memory: Uint8Array): void {
    if (this.bytes !== memory) {
      this.bytes = memory;
      this.fixed = undefined;
    }
    this.leases = 0;
    this.sparse = undefined;
  }

  /** Refuses the message. */
  fail(at: number, reason: string): never {
    throw new CodecError(this.typeName, reason, at - this.origin);
  }
}
