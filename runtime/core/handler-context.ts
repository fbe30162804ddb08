/**
 * What a handler is given besides its request. Calls that it makes take it as an option, interceptors see it;
 * the server's ServerCall is one.
 */
import type { ContextValues } from './context-values.ts';
import type { Metadata } from './metadata.ts';
import type { PeerInfo } from './peer.ts';

/** What a handler knows of its call besides the request. */
export interface HandlerContext {
  /** `pkg.Service/Method` */
  readonly method: string;
  /** Who calls: what was verified, and what it says of itself. */
  readonly peer: PeerInfo;
  /** As the client sent it. */
  readonly metadata: Metadata;
  /**
   * Metadata to send ahead of the answer: with the first message of a stream, otherwise with the response or
   * error.
   */
  readonly header: Metadata;
  /** Metadata to send behind the answer, also behind an error. */
  readonly trailer: Metadata;
  /** What interceptors have put there for the handler. */
  readonly values: ContextValues;
  /**
   * Fires when the client cancels, the deadline passes or the connection is lost; its reason is an RpcError.
   */
  readonly signal: AbortSignal;
  /**
   * Time left in ms, never below 0; undefined when there is no limit. Calls that are given this context keep
   * to it.
   */
  timeoutMs(): number | undefined;
  /**
   * Sends the header of a stream now rather than with its first message. For other methods it does nothing:
   * theirs goes with the response.
   */
  sendHeader(): void;
}
