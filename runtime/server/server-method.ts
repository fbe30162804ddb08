/**
 * A method of a server: its types, its handler, and its checks. HandlerTable creates it, and each request
 * reads it.
 */
import type { MessageType } from '../codec/types.ts';
import type { HandlerContext } from '../core/handler-context.ts';
import type { MessageCheck } from '../core/message-check.ts';
import type { StaleRequests } from './stale-requests.ts';

export type AnyHandler = (request: unknown, context: HandlerContext) => unknown;

export interface ServerMethod {
  readonly path: string;
  readonly requestType: MessageType<unknown, never>;
  readonly responseType: MessageType<unknown, unknown>;
  readonly handler: AnyHandler;
  /** The value of `this` in the handler. */
  readonly self: object;
  /** Whether the call is answered before the handler runs. */
  readonly oneWay: boolean;
  readonly check: MessageCheck;
  readonly stale: StaleRequests;
}

/** A method with a stream in either direction. */
export interface StreamMethod extends ServerMethod {
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  /** The method of the call that opens the stream. The response that ends the stream has no message. */
  readonly open: ServerMethod;
}
