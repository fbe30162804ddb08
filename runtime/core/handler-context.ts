/**
 * The context of a handler: everything that the handler receives besides its request. The handler passes its
 * context as an option to the calls that it makes. Interceptors also see the context. The server's ServerCall
 * implements this interface.
 */
import type { ContextValues } from './context-values.ts';
import type { Metadata } from './metadata.ts';
import type { PeerInfo } from './peer.ts';

/** The information and functions that a handler has besides the request. */
export interface HandlerContext {
  /** `pkg.Service/Method` */
  readonly method: string;
  /** The caller: its verified identity, and its unverified claims about itself. */
  readonly peer: PeerInfo;
  /** Metadata sent by the client. */
  readonly metadata: Metadata;
  /**
   * Metadata to send before the response. It is sent with the first message of a stream, otherwise with the
   * response or error.
   */
  readonly header: Metadata;
  /** Metadata to send after the response, or with an error. */
  readonly trailer: Metadata;
  /** Values that interceptors have set for the handler. */
  readonly values: ContextValues;
  /**
   * Fires when the client cancels, the deadline passes or the connection is lost. The signal's reason is an
   * RpcError.
   */
  readonly signal: AbortSignal;
  /**
   * Returns the time left in ms, at least 0, or undefined when the call has no time limit. Calls that get
   * this context end within the same limit.
   */
  timeoutMs(): number | undefined;
  /**
   * Sends the header of a stream of responses now instead of with the first message. It has no effect on
   * other methods, whose header is sent with the response.
   */
  sendHeader(): void;
}
