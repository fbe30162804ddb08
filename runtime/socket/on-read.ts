/** The option `onread` of a socket: received bytes are copied into a buffer of the application. */

export interface OnRead {
  /** The buffer, or a function that returns the buffer for the next bytes. */
  buffer: Uint8Array | (() => Uint8Array);
  /** Receives the number of bytes in the buffer. Returns false to stop reading until `resume()`. */
  callback(bytesWritten: number, buffer: Uint8Array): boolean;
}

export class UserBuffer {
  readonly #onRead: OnRead;
  #buffer: Uint8Array;

  constructor(onRead: OnRead) {
    const { buffer } = onRead;
    this.#onRead = onRead;
    this.#buffer = typeof buffer === 'function' ? buffer() : buffer;
  }

  /**
   * Returns the rest of `bytes`, which the application does not want yet, or an empty result when it accepts
   * more.
   */
  fill(bytes: Uint8Array): { readonly rest: Uint8Array; readonly more: boolean } {
    const room = this.#buffer;
    const count = Math.min(room.byteLength, bytes.byteLength);
    room.set(bytes.subarray(0, count));
    const more = this.#onRead.callback(count, room) !== false;
    const { buffer } = this.#onRead;
    if (typeof buffer === 'function') this.#buffer = buffer();
    return { rest: bytes.subarray(count), more };
  }
}
