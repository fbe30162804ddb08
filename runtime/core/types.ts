/** Types that connect a generated service definition with its client and its handlers. */

import type { MethodDefinition, ServiceDefinition } from '../codec/types.ts';
import type { ContextValues } from './context-values.ts';
import type { HandlerContext } from './handler-context.ts';
import type { Interceptor } from './interceptor.ts';
import type { Lease } from './lease.ts';
import type { Metadata, MetadataInit } from './metadata.ts';
import type { HedgingOptions, RetryOptions } from './repeat-options.ts';

/** What a call may be given besides its request. */
export interface CallOptions {
  /**
   * Time limit in ms from now, connecting and waiting included; finite, at least 0. Default: that of the
   * client or channel, else none.
   */
  timeoutMs?: number | undefined;
  /** Gives the call up; it then rejects with CANCELLED and the signal's reason as `cause`. */
  signal?: AbortSignal | undefined;
  metadata?: MetadataInit | undefined;
  /** Called with what the server sent ahead of its answer, if anything, before the call settles. */
  onHeader?: ((header: Metadata) => void) | undefined;
  /** Called with what the server sent behind its answer, if anything, before the call settles. */
  onTrailer?: ((trailer: Metadata) => void) | undefined;
  /**
   * Of the handler that makes this call: it then has no more time than is left there, and is given up when
   * the handler's caller gives up or is gone.
   */
  context?: HandlerContext | undefined;
  /**
   * Waits for a connection until the time limit, through attempts that fail. Default false: without a
   * connection the call fails with the first attempt that does.
   */
  waitForReady?: boolean | undefined;
  /** For the interceptors of the client: typed values that stay in this process. */
  values?: ContextValues | undefined;
  /**
   * Makes the call again after it failed; for methods with an idempotency level, or for which the client says
   * `idempotent`: with `false` only when no handler can have run. `false`: not, whatever the client's default
   * is.
   */
  retry?: RetryOptions | false | undefined;
  /** Makes the call several times and takes the first answer; for methods with an idempotency level. */
  hedging?: HedgingOptions | false | undefined;
  /**
   * Memory for the response: its `bytes` fields are then views of this lease, on 64 bytes each, however large
   * they are. When the call is given up and the server does not let go of the memory, the lease is lost:
   * `released` is true.
   */
  into?: Lease | undefined;
  /**
   * What becomes of a response that does not fit `into`. `error` (default): the call fails with
   * RESOURCE_EXHAUSTED, which says how much memory it takes; its handler has run. `lease`: the response comes
   * with a lease of its own, and `leaseOf(response)` is another one than `into`.
   */
  intoOverflow?: 'error' | 'lease' | undefined;
}

/** What a stream may be given: as for calls, but no memory for the response; and it is made once. */
export type StreamOptions = Omit<CallOptions, 'into' | 'intoOverflow' | 'retry' | 'hedging'>;

/** What streaming methods take: generators and arrays, for example. */
export type Messages<T> = AsyncIterable<T> | Iterable<T>;

interface Kind<RequestStream extends boolean, ResponseStream extends boolean> {
  readonly requestStream: RequestStream;
  readonly responseStream: ResponseStream;
}

interface OneWay extends Kind<false, false> {
  readonly options: { readonly oneWay: true };
}

type ClientFunction<M> =
  M extends MethodDefinition<infer _Req, infer ReqInit, infer Res, infer _ResInit>
    ? M extends Kind<false, false>
      ? (request: ReqInit, options?: CallOptions) => Promise<M extends OneWay ? void : Res>
      : M extends Kind<false, true>
        ? (request: ReqInit, options?: StreamOptions) => AsyncIterable<Res>
        : M extends Kind<true, false>
          ? (requests: Messages<ReqInit>, options?: StreamOptions) => Promise<Res>
          : (requests: Messages<ReqInit>, options?: StreamOptions) => AsyncIterable<Res>
    : never;

type HandlerFunction<M> =
  M extends MethodDefinition<infer Req, infer _ReqInit, infer _Res, infer ResInit>
    ? M extends Kind<false, false>
      ? M extends OneWay
        ? (request: Req, context: HandlerContext) => void | Promise<void>
        : (request: Req, context: HandlerContext) => ResInit | Promise<ResInit>
      : M extends Kind<false, true>
        ? (request: Req, context: HandlerContext) => Messages<ResInit>
        : M extends Kind<true, false>
          ? (requests: AsyncIterable<Req>, context: HandlerContext) => ResInit | Promise<ResInit>
          : (requests: AsyncIterable<Req>, context: HandlerContext) => Messages<ResInit>
    : never;

/**
 * The client of a service: a function per method. A single response comes as a promise, a stream of them as
 * an async iterable that can be read once and starts when it is first read.
 */
export type Client<D extends ServiceDefinition> = {
  readonly [K in keyof D['methods']]: ClientFunction<D['methods'][K]>;
};

/** What the calls of every client understand. */
export interface PortableOptions {
  signal?: AbortSignal;
}

type PortableFunction<M> =
  M extends MethodDefinition<infer _Req, infer ReqInit, infer Res, infer _ResInit>
    ? M extends Kind<false, false>
      ? (request: ReqInit, options?: PortableOptions) => Promise<M extends OneWay ? unknown : Res>
      : M extends Kind<false, true>
        ? (request: ReqInit, options?: PortableOptions) => AsyncIterable<Res>
        : M extends Kind<true, false>
          ? (requests: AsyncIterable<ReqInit>, options?: PortableOptions) => Promise<Res>
          : (requests: AsyncIterable<ReqInit>, options?: PortableOptions) => AsyncIterable<Res>
    : never;

/**
 * A client of the service, whoever has made it: those of this package, of nice-grpc and of connect-es can be
 * assigned to it. For code that runs over any of them; what it may use is what all of them have.
 */
export type PortableClient<D extends ServiceDefinition> = {
  readonly [K in keyof D['methods']]: PortableFunction<D['methods'][K]>;
};

/**
 * The handlers of a service: a function per method that returns the response or a promise of it, or, for a
 * stream of responses, an iterable (a generator).
 */
export type Handlers<D extends ServiceDefinition> = {
  [K in keyof D['methods']]: HandlerFunction<D['methods'][K]>;
};

/** Options that a client can have for its calls. */
export interface MethodDefaults
  extends Omit<CallOptions, 'signal' | 'context' | 'into' | 'intoOverflow' | 'values'> {
  /**
   * Whether calling it twice does no harm, so that hedging is allowed and every retry. Default: what
   * `idempotency_level` in the .proto says. `false` with `retry`: only what has not run is made again.
   */
  readonly idempotent?: boolean | undefined;
  /**
   * Around each call, the first outermost: those of the channel, then those of `*`, then those of the method.
   */
  readonly interceptors?: readonly Interceptor[] | undefined;
}

/** Options for every call of a client (`*`) or for one method. */
export type ClientDefaults<D extends ServiceDefinition> = {
  readonly [K in keyof D['methods'] | '*']?: MethodDefaults;
};
