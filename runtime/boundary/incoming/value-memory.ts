/**
 * Memory for `bytes` values that are copied out of a receive slab. Each value begins on a multiple of 64
 * bytes, so that typed arrays of any kind can be laid over it. Values of up to 32 KiB share chunks. This is
 * several times faster than separate memory at a few hundred bytes, and twice as fast at 30 KiB. A chunk
 * lives as long as any value in it, as Node's Buffers do. Incoming uses it, on the JS thread.
 */
import { markAsUntransferable } from 'node:worker_threads';
import { alignedOffset, alignmentBytes } from '../../codec/memory/aligned-message.ts';
import { nativeIfLoads } from '../../native/native.ts';

/** A shorter value gets memory of its own, which V8 keeps in its own heap. */
const sharedMin = 64;

/**
 * Returns memory of `bytes` bytes that begins on a multiple of 64. V8 aligns to 16 bytes only, and only
 * native code can see the address. Without the addon the memory begins where V8 places it. The memory is not
 * filled with zeros, as `new ArrayBuffer` would do, because that takes nearly as long as the copy. The values
 * overwrite the memory before it is handed out, except for the gaps between them.
 */
function aligned(bytes: number): Uint8Array<ArrayBuffer> {
  const native = nativeIfLoads();
  if (native === undefined) return new Uint8Array(bytes);
  const { buffer } = Buffer.allocUnsafeSlow(bytes + alignmentBytes);
  const beyond = native.address(buffer) % alignmentBytes;
  return new Uint8Array(buffer, beyond === 0 ? 0 : alignmentBytes - beyond, bytes);
}

/** A chunk of memory in which values are placed one after another. */
class Chunks {
  /**
   * A longer value gets memory of its own. A longer value in a chunk would keep much memory alive, or waste
   * much at the end of the chunk.
   */
  readonly valueMax: number;
  readonly #chunkBytes: number;
  #chunk: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  /**
   * The chunk's buffer and offset. They are stored here because reading them from a typed array is a call
   * that costs as much as copying a small value.
   */
  #buffer: ArrayBuffer = this.#chunk.buffer;
  #from = 0;
  #used = 0;

  constructor(valueMax: number, chunkBytes: number) {
    this.valueMax = valueMax;
    this.#chunkBytes = chunkBytes;
  }

  take(bytes: number): Uint8Array {
    if (bytes > this.#chunk.length - this.#used) {
      // This is called only here, so that a process with small messages does not keep more memory than it
      // needs.
      if (this.#chunk.length === 0) nativeIfLoads()?.keepFreedMemory();
      this.#chunk = aligned(this.#chunkBytes);
      // The chunk is marked as untransferable, because transferring one value to another thread would take
      // the others with it.
      this.#buffer = this.#chunk.buffer;
      this.#from = this.#chunk.byteOffset;
      markAsUntransferable(this.#buffer);
      this.#used = 0;
    }
    const value = new Uint8Array(this.#buffer, this.#from + this.#used, bytes);
    this.#used = alignedOffset(this.#used + bytes);
    return value;
  }
}

const small = new Chunks(4 * 1024, 32 * 1024);
/**
 * Values up to this length share a chunk. Separate memory would cost more than copying such a value, and
 * would make garbage collection run more often. Chunks of 256 KiB are no faster, and do not fit into
 * second-level caches.
 */
const medium = new Chunks(32 * 1024, 128 * 1024);

/**
 * Returns a copy of bytes [start, end) of `from`. The copy begins on a multiple of 64 if it is at least that
 * long.
 */
export function copyValue(from: Uint8Array, start: number, end: number): Uint8Array {
  const bytes = end - start;
  if (bytes < sharedMin) return from.slice(start, end);
  const value = memoryFor(bytes);
  value.set(from.subarray(start, end));
  return value;
}

function memoryFor(bytes: number): Uint8Array {
  if (bytes <= small.valueMax) return small.take(bytes);
  return bytes <= medium.valueMax ? medium.take(bytes) : aligned(bytes);
}
