/**
 * Where `bytes` values go that are copied out of a receive slab: on 64 bytes, so that typed arrays of any
 * kind can be laid over them. Values of up to 32 KiB share chunks, which is faster than memory for each,
 * several times at a few hundred bytes, twice at 30 KiB; a chunk lives as long as any of them, as with Node's
 * Buffers. Used by Incoming, on the JS thread.
 */
import { markAsUntransferable } from 'node:worker_threads';
import { alignedOffset, alignmentBytes } from '../../codec/memory/aligned-message.ts';
import { loadNative } from '../../native/native.ts';

/** A shorter one has memory of its own, which V8 keeps in its own heap. */
const sharedMin = 64;

/**
 * Memory of so many bytes that begins on 64 bytes: V8 gives 16, and only native code sees where. All of it is
 * written before anybody sees it, but for what lies beside values; to fill it with zeros first, as
 * `new ArrayBuffer` does, takes nearly as long as the copy.
 */
function aligned(bytes: number): Uint8Array<ArrayBuffer> {
  const { buffer } = Buffer.allocUnsafeSlow(bytes + alignmentBytes);
  const beyond = loadNative().address(buffer) % alignmentBytes;
  return new Uint8Array(buffer, beyond === 0 ? 0 : alignmentBytes - beyond, bytes);
}

/** Memory that values share, one behind the other. */
class Chunks {
  /**
   * A longer value has memory of its own: what it would hold alive, or waste at the end of a chunk, is no
   * longer small beside it.
   */
  readonly valueMax: number;
  readonly #chunkBytes: number;
  #chunk: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  /**
   * Memory and beginning of the chunk. To ask a typed array for them is a call, which costs as much as the
   * copy of a small value.
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
      // Only here: a process whose messages are small is not to hold more than it needs.
      if (this.#chunk.length === 0) loadNative().keepFreedMemory();
      this.#chunk = aligned(this.#chunkBytes);
      // To transfer one value to another thread would take the others with it.
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
 * Memory of its own costs such a value more than the copy does, and makes garbage collection run more often.
 * Chunks of 256 KiB are no faster, and leave the second-level caches.
 */
const medium = new Chunks(32 * 1024, 128 * 1024);

/** A copy of bytes [start, end) of `from`, on 64 bytes if it has so many. */
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
