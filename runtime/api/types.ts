/** Types that connect a generated service definition with its client and its handlers. */

import type { Lease } from '../call/lease.ts';
import type { Metadata, MetadataInit } from '../call/metadata.ts';
import type { HandlerContext } from '../call/server-call.ts';
import type { MethodDefinition, ServiceDefinition } from '../codec/types.ts';

/** What a call may be given besides its request. */
export interface CallOptions {
  /** Time limit in ms from now, connecting and waiting included; finite, at least 0. Default: that of the client or channel, else none. */
  timeoutMs?: number | undefined;
  /** Gives the call up; it then rejects with CANCELLED and the signal's reason as `cause`. */
  signal?: AbortSignal | undefined;
  metadata?: MetadataInit | undefined;
  /** Called with what the server sent ahead of its answer, if anything, before the call settles. */
  onHeader?: ((header: Metadata) => void) | undefined;
  /** Called with what the server sent behind its answer, if anything, before the call settles. */
  onTrailer?: ((trailer: Metadata) => void) | undefined;
  /**
   * Of the handler that makes this call: it then has no more time than is left there, and is given up when the handler's caller
   * gives up or is gone.
   */
  context?: HandlerContext | undefined;
  /**
   * Waits for a connection until the time limit, through attempts that fail. Default false: without a connection the call fails with the
   * first attempt that does.
   */
  waitForReady?: boolean | undefined;
  /** Memory for a large response: its `bytes` fields are then views of this lease. One that does not fit in it comes with a lease of its own. */
  into?: Lease | undefined;
}

type UnaryNames<D extends ServiceDefinition> = {
  [K in keyof D['methods']]: D['methods'][K] extends {
    readonly requestStream: false;
    readonly responseStream: false;
  }
    ? K
    : never;
}[keyof D['methods']];

/** The client of a service: a function per unary method that returns a promise of the response. */
export type ClientOf<D extends ServiceDefinition> = {
  readonly [K in UnaryNames<D>]: D['methods'][K] extends MethodDefinition<
    infer _Req,
    infer ReqInit,
    infer Res,
    infer _ResInit
  >
    ? (request: ReqInit, options?: CallOptions) => Promise<Res>
    : never;
};

/** The handlers of a service: a function per unary method that returns the response or a promise of it. */
export type HandlersOf<D extends ServiceDefinition> = {
  [K in UnaryNames<D>]: D['methods'][K] extends MethodDefinition<
    infer Req,
    infer _ReqInit,
    infer _Res,
    infer ResInit
  >
    ? (request: Req, context: HandlerContext) => ResInit | Promise<ResInit>
    : never;
};

/** Options that a client can have for its calls. */
export type MethodDefaults = Pick<CallOptions, 'timeoutMs' | 'waitForReady'>;

/** Options for every call of a client (`*`) or for one method. */
export type ClientDefaults<D extends ServiceDefinition> = {
  readonly [K in UnaryNames<D> | '*']?: MethodDefaults;
};
