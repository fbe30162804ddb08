/** The options of a socket, and the interface between a socket and its creator. */
import type { PeerInfo } from '../core/peer.ts';
import type { OnRead } from './on-read.ts';
import type { Endpoint } from './place.ts';

/** Options of a socket, as in `node:net`. */
export interface SocketOptions {
  /** Keeps the writable side open after the peer has ended its own. Default false. */
  allowHalfOpen?: boolean;
  /** Number of bytes that are buffered in each direction before `write()` returns false or reading stops. */
  highWaterMark?: number;
  readableHighWaterMark?: number;
  writableHighWaterMark?: number;
  /** When the signal is aborted, destroys the socket with an AbortError. */
  signal?: AbortSignal;
  /** Reads into a buffer of the application instead of emitting `data`. */
  onread?: OnRead;
  /**
   * Declares that written buffers are never changed, so that large buffers do not have to be copied. Default
   * false, so that a buffer may be reused after the callback of its write was called.
   */
  writesStay?: boolean;
}

/** The facts about a connection that the creator of its socket knows. */
export interface SocketEnds {
  readonly remote: Endpoint;
  readonly local: Endpoint;
  readonly peer: PeerInfo | undefined;
}

/** The creator of a socket, as the socket sees it. */
export interface SocketOwner {
  /** Runs when the socket was destroyed. */
  onDestroyed?(): void;
  /** Runs when `ref()` or `unref()` was called. */
  onRef?(isReferenced: boolean): void;
}
