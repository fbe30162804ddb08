/**
 * The handler's context: everything it receives besides its request. Calls that the handler makes take it as
 * an option, interceptors see it; the server's ServerCall implements it.
 */
import type { ContextValues } from './context-values.ts';
import type { Metadata } from './metadata.ts';
import type { PeerInfo } from './peer.ts';

/** The information and functions that a handler has besides the request. */
export interface HandlerContext {
  /** `pkg.Service/Method` */
  readonly method: string;
  /** The caller: its verified identity, and what it claims about itself. */
  readonly peer: PeerInfo;
  /** Metadata sent by the client. */
  readonly metadata: Metadata;
  /**
   * Metadata to send before the response: with the first message of a stream, otherwise with the response or
   * error.
   */
  readonly header: Metadata;
  /** Metadata to send after the response, or with an error. */
  readonly trailer: Metadata;
  /** Values that interceptors have set for the handler. */
  readonly values: ContextValues;
  /**
   * Fires when the client cancels, the deadline passes or the connection is lost; its reason is an RpcError.
   */
  readonly signal: AbortSignal;
  /**
   * Returns the time left in ms, never below 0, or undefined without a limit. Calls that are given this
   * context observe it.
   */
  timeoutMs(): number | undefined;
  /**
   * Sends the header of a stream now instead of with its first message. No effect for other methods, whose
   * header is sent with the response.
   */
  sendHeader(): void;
}
