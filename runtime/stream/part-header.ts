/**
 * The 12 bytes that begin the metadata of every part of a stream (docs/wire/calls.md): which stream, which of
 * its parts, what is in it. Written and read by both ends of a stream, on the JS thread.
 */
import { readWord, writeWord } from '../codec/memory/word.ts';

export const PartKind = { open: 1, push: 2, pull: 3 } as const;
export const PartFlag = {
  /** Half-close: nothing follows in this direction. */
  last: 1,
  /** Several messages, each with its length (u16) in front. */
  packed: 2,
  /** PULL: the application waits for this part. */
  awaited: 4,
} as const;

export const partHeaderBytes = 12;
/** In front of each message of a packed part. */
export const packedLengthBytes = 2;

/** Method word of a PUSH. Ids of real methods begin at 256. */
export const pushMethod = 2;

/**
 * Method word of a PULL. Not the method's own id, which the OPEN has: the native predictor of large responses
 * learns by this word, and only the answers of PULLs are ever large. An OPEN must never be given memory for
 * its answer, as that could delay it behind its own parts.
 */
export function pullMethod(id: number): number {
  return (id ^ 1) >>> 0;
}

const scratch = new Uint8Array(partHeaderBytes);

/** The header's bytes: shared, good until the next call. */
export function partHeader(
  stream: number,
  sequence: number,
  count: number,
  kind: number,
  flags: number,
): Uint8Array {
  const bytes = scratch;
  writeWord(bytes, 0, stream);
  writeWord(bytes, 4, sequence);
  bytes[8] = count;
  bytes[9] = count >>> 8;
  bytes[10] = kind;
  bytes[11] = flags;
  return bytes;
}

/** A header with metadata entries behind it, in memory of its own. */
export function withEntries(header: Uint8Array, entries: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(partHeaderBytes + entries.byteLength);
  bytes.set(header);
  bytes.set(entries, partHeaderBytes);
  return bytes;
}

/** A header that has been read; used again for one after the other. */
export class PartHeader {
  stream = 0;
  sequence = 0;
  count = 0;
  kind = 0;
  flags = 0;

  get last(): boolean {
    return (this.flags & PartFlag.last) !== 0;
  }

  get awaited(): boolean {
    return (this.flags & PartFlag.awaited) !== 0;
  }

  get packed(): boolean {
    return (this.flags & PartFlag.packed) !== 0;
  }

  /** Reads metadata of `length` bytes at `at`. Returns why it is no part header, or an empty string. */
  read(bytes: Uint8Array, at: number, length: number): string {
    if (length < partHeaderBytes) return 'part without a header';
    this.stream = readWord(bytes, at);
    this.sequence = readWord(bytes, at + 4);
    this.count = bytes[at + 8]! | (bytes[at + 9]! << 8);
    this.kind = bytes[at + 10]!;
    this.flags = bytes[at + 11]!;
    if (this.stream === 0) return 'part of stream 0';
    if ((this.flags & ~(PartFlag.last | PartFlag.packed | PartFlag.awaited)) !== 0)
      return 'part with unknown flags';
    if (this.packed ? this.count === 0 : this.count > 1) return 'part with a wrong count';
    switch (this.kind) {
      case PartKind.open:
        return this.sequence !== 0 || this.packed ? 'malformed open' : '';
      case PartKind.push:
      case PartKind.pull:
        return '';
      default:
        return 'part of an unknown kind';
    }
  }
}
