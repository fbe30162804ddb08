/**
 * The frames that the two ends of a tunnel send to each other. Each frame belongs to one connection. Its head
 * has nine bytes: one byte for the kind, then the number of the connection and a value, both of 32 bits in
 * little-endian order. Carriers write and read the frames on the JS thread.
 *
 * All frames of an event-loop iteration are sent in one message, so that small requests of many connections
 * together cost little more than a single request.
 */

/** Kinds of frames, and the meaning of their value. */
export const Kind = {
  /** A new connection. */
  open: 1,
  /** Data; the value is the length in bytes. */
  data: 2,
  /** The sender's program has ended its side of the connection. */
  fin: 3,
  /** The connection is reset; no frame of it follows. */
  reset: 4,
  /**
   * The value is the number of bytes that the sender's program has read; the receiver may send this number of
   * bytes more.
   */
  window: 5,
  /** The sender accepts no further connections; the number of the connection is 0. */
  away: 6,
} as const;

const headBytes = 9;
/** A message is sent when it has this number of bytes, so that it fits into a 1 MiB block of the arena. */
const messageBytes = 512 * 1024;
/**
 * Data up to this length is copied into the shared buffer. Longer data is sent directly from its own memory.
 */
const copiedBytes = 1024;
/** Length of the shared buffers for heads and short data. They come from Node's buffer pool. */
const sharedBytes = 4096;

const nothing = Buffer.alloc(0);

function writeHead(to: Buffer, at: number, kind: number, connection: number, value: number): number {
  to[at] = kind;
  to.writeUInt32LE(connection, at + 1);
  return to.writeUInt32LE(value, at + 5);
}

/** Collects frames as the parts of messages. */
export class FrameWriter {
  /** Full messages, oldest first. */
  readonly #full: Uint8Array[][] = [];
  /** The message that is being filled. */
  #parts: Uint8Array[] = [];
  #bytes = 0;
  /**
   * The shared buffer. Its bytes from `#from` to `#at` are written, but the message does not contain them
   * yet.
   */
  #shared = nothing;
  #from = 0;
  #at = 0;

  get isEmpty(): boolean {
    return this.#full.length === 0 && this.#bytes === 0;
  }

  add(kind: number, connection: number, value = 0): void {
    this.#reserve(headBytes);
    this.#at = writeHead(this.#shared, this.#at, kind, connection, value);
    this.#count(headBytes);
  }

  /** Adds data. The caller must not change `bytes` after this call. */
  data(connection: number, bytes: Uint8Array): void {
    const { byteLength } = bytes;
    const copies = byteLength <= copiedBytes;
    this.#reserve(copies ? headBytes + byteLength : headBytes);
    this.#at = writeHead(this.#shared, this.#at, Kind.data, connection, byteLength);
    if (copies) {
      this.#shared.set(bytes, this.#at);
      this.#at += byteLength;
    } else {
      this.#closePart();
      this.#parts.push(bytes);
    }
    this.#count(headBytes + byteLength);
  }

  /** Returns the parts of the next message. */
  take(): Uint8Array[] {
    const first = this.#full.shift();
    if (first !== undefined) return first;
    this.#closePart();
    const parts = this.#parts;
    this.#parts = [];
    this.#bytes = 0;
    return parts;
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#shared.byteLength) return;
    this.#closePart();
    this.#shared = Buffer.allocUnsafe(sharedBytes);
    this.#from = 0;
    this.#at = 0;
  }

  #closePart(): void {
    if (this.#at > this.#from) this.#parts.push(this.#shared.subarray(this.#from, this.#at));
    this.#from = this.#at;
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes >= messageBytes) this.#full.push(this.take());
  }
}

export interface FrameHandler {
  onFrame(kind: number, connection: number, value: number): void;
  /** Receives consecutive segments of the data of a frame. */
  onData(connection: number, bytes: Buffer): void;
}

/** Reads the parts of messages. */
export class FrameReader {
  readonly #handler: FrameHandler;
  #connection = 0;
  /** Bytes of the last data frame that have not arrived yet. */
  #left = 0;

  constructor(handler: FrameHandler) {
    this.#handler = handler;
  }

  /** Passes the frames to the handler. Throws when the bytes are no valid frames. */
  read(parts: readonly Uint8Array[]): void {
    for (const { buffer, byteOffset, byteLength } of parts)
      this.#readPart(Buffer.from(buffer, byteOffset, byteLength));
  }

  #readPart(part: Buffer): void {
    for (let at = 0; at < part.byteLength; ) {
      if (this.#left > 0) {
        const end = Math.min(part.byteLength, at + this.#left);
        this.#left -= end - at;
        const isAll = at === 0 && end === part.byteLength;
        this.#handler.onData(this.#connection, isAll ? part : part.subarray(at, end));
        at = end;
        continue;
      }
      if (at + headBytes > part.byteLength) throw new Error('the other end has sent half a frame');
      const kind = part[at]!;
      const connection = part.readUInt32LE(at + 1);
      const value = part.readUInt32LE(at + 5);
      at += headBytes;
      if (kind === Kind.data) {
        this.#connection = connection;
        this.#left = value;
      } else this.#handler.onFrame(kind, connection, value);
    }
  }
}
