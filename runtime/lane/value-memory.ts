/**
 * Where `bytes` values go that are copied out of a receive slab: on 64 bytes, so that typed arrays of any kind can be laid over them. Values of a few hundred
 * bytes share chunks, which is several times faster than memory for each; a chunk lives as long as any of them, as with Node's Buffers. Used by Incoming, on the
 * JS thread.
 */
import { markAsUntransferable } from 'node:worker_threads';
import { imageAlignment, imagePlace } from '../codec/memory/image.ts';
import { loadNative } from '../native.ts';

/** A shorter one has memory of its own, which V8 keeps in its own heap. */
const sharedMin = 64;
/** A longer one, too: the memory it would hold alive, or waste at the end of a chunk, is no longer small beside it. */
const sharedMax = 4096;
const chunkBytes = 32 * 1024;

/** Memory of so many bytes that begins on 64 bytes. V8 gives 16, and only native code sees where. */
function aligned(bytes: number): Uint8Array<ArrayBuffer> {
  const buffer = new ArrayBuffer(bytes + imageAlignment);
  const beyond = loadNative().address(buffer) % imageAlignment;
  return new Uint8Array(buffer, beyond === 0 ? 0 : imageAlignment - beyond, bytes);
}

let chunk: Uint8Array<ArrayBuffer> = new Uint8Array(0);
let used = 0;

/** A copy of bytes [start, end) of `from`, on 64 bytes if it has so many. */
export function copyValue(from: Uint8Array, start: number, end: number): Uint8Array {
  const bytes = end - start;
  if (bytes < sharedMin) return from.slice(start, end);
  const value = bytes > sharedMax ? aligned(bytes) : share(bytes);
  value.set(from.subarray(start, end));
  return value;
}

function share(bytes: number): Uint8Array {
  if (bytes > chunk.length - used) {
    chunk = aligned(chunkBytes);
    // To transfer one value to another thread would take the others with it.
    markAsUntransferable(chunk.buffer);
    used = 0;
  }
  const value = new Uint8Array(chunk.buffer, chunk.byteOffset + used, bytes);
  used = imagePlace(used + bytes);
  return value;
}
