/**
 * The part header: the 12 bytes at the beginning of the metadata of every part of a stream
 * (docs/wire/calls.md §8). Both ends of a stream write and read it, on the JS thread.
 */
import { readWord, writeWord } from '../codec/memory/word.ts';

export const PartKind = { open: 1, push: 2, pull: 3 } as const;
export const PartFlag = {
  /** Half-close: this is the last part in its direction. */
  last: 1,
  /** The part has several messages, each preceded by its length (u16). */
  packed: 2,
  /** The application waits for this part. Only PULLs have this flag. */
  awaited: 4,
} as const;

export const partHeaderBytes = 12;
/** Size in bytes of the length field before each message of a packed part. */
export const packedLengthBytes = 2;

/** The method word of a PUSH. The ids of real methods begin at 256. */
export const pushMethod = 2;

/**
 * Returns the method word of a PULL. It differs from the method's id, which the OPEN has. The native
 * predictor of response sizes learns by this word, and only responses to PULLs are large. An OPEN must never
 * get a reply buffer, because waiting for a buffer could delay the OPEN behind its own parts.
 */
export function pullMethod(id: number): number {
  return (id ^ 1) >>> 0;
}

const scratch = new Uint8Array(partHeaderBytes);

/** Returns the bytes of a header in shared memory, valid until the next call. */
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

/** Returns a header followed by metadata entries, in new memory. */
export function withEntries(header: Uint8Array, entries: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(partHeaderBytes + entries.byteLength);
  bytes.set(header);
  bytes.set(entries, partHeaderBytes);
  return bytes;
}

/** A decoded header; the object is reused. */
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

  /**
   * Reads metadata of `length` bytes at `at`. Returns '' on success, or the reason why the metadata does not
   * begin with a part header.
   */
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
