// The hand-made protocol of the raw socket peers. Its frames are `length u32 · call u32 · kind u32 ·
// message`, little endian.
const headBytes = 12;
/** Up to this number of bytes, one copy is cheaper than a system call with many buffers. */
const copyMax = 64 * 1024;

/** Returns the header of a frame. */
export function headOf(length, call, kind) {
  const head = Buffer.allocUnsafe(headBytes);
  head.writeUInt32LE(length, 0);
  head.writeUInt32LE(call, 4);
  head.writeUInt32LE(kind, 8);
  return head;
}

/** Collects the frames of one event-loop iteration and writes them at once. */
export class FrameWriter {
  #socket;
  #parts = [];
  #bytes = 0;

  constructor(socket) {
    this.#socket = socket;
  }

  /** @param {Uint8Array} message */
  write(call, kind, message) {
    if (this.#parts.length === 0) setImmediate(() => this.#flush());
    this.#parts.push(headOf(message.length, call, kind), message);
    this.#bytes += headBytes + message.length;
  }

  #flush() {
    if (this.#bytes <= copyMax) {
      this.#socket.write(Buffer.concat(this.#parts, this.#bytes));
    } else {
      this.#socket.cork();
      for (const part of this.#parts) this.#socket.write(part);
      this.#socket.uncork();
    }
    this.#parts = [];
    this.#bytes = 0;
  }
}

/** Calls `take(call, kind, message)` for each complete frame of the socket. */
export function readFrames(socket, take) {
  let parts = [];
  let bytes = 0;
  let wanted = headBytes;
  socket.on('data', (chunk) => {
    parts.push(chunk);
    bytes += chunk.length;
    if (bytes < wanted) return;
    const all = parts.length === 1 ? chunk : Buffer.concat(parts, bytes);
    let at = 0;
    wanted = headBytes;
    while (all.length - at >= headBytes) {
      const length = all.readUInt32LE(at);
      if (all.length - at < headBytes + length) {
        wanted = headBytes + length;
        break;
      }
      take(
        all.readUInt32LE(at + 4),
        all.readUInt32LE(at + 8),
        all.subarray(at + headBytes, at + headBytes + length),
      );
      at += headBytes + length;
    }
    bytes = all.length - at;
    parts = bytes === 0 ? [] : [all.subarray(at)];
  });
}
