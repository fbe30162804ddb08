/** What a socket takes from the application, and what it needs of its creator. */
import type { PeerInfo } from '../core/peer.ts';
import type { OnRead } from './on-read.ts';
import type { Endpoint } from './place.ts';

/** Options of a socket, as in `node:net`. */
export interface SocketOptions {
  /** Keeps the writable side open after the peer has ended its own. Default false. */
  allowHalfOpen?: boolean;
  /** Bytes that are buffered in both directions before `write()` returns false or reading stops. */
  highWaterMark?: number;
  readableHighWaterMark?: number;
  writableHighWaterMark?: number;
  /** Destroys the socket with an AbortError. */
  signal?: AbortSignal;
  /** Reads into a buffer of the application instead of emitting `data`. */
  onread?: OnRead;
  /**
   * Large buffers that are written stay unchanged for good, so they need not be copied. Default false: a
   * buffer may be reused when the callback of its write was called.
   */
  writesStay?: boolean;
}

/** What the creator of a socket knows of its connection. */
export interface SocketEnds {
  readonly remote: Endpoint;
  readonly local: Endpoint;
  readonly peer: PeerInfo | undefined;
}

/** The creator of a socket. */
export interface SocketOwner {
  /** The socket was destroyed. */
  onDestroyed?(): void;
  /** `ref()` or `unref()` was called. */
  onRef?(isReferenced: boolean): void;
}
