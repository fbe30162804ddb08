/** Types that connect a generated service definition with its client and its handlers. */

import type { MethodDefinition, ServiceDefinition } from '../codec/types.ts';
import type { ContextValues } from './context-values.ts';
import type { HandlerContext } from './handler-context.ts';
import type { Interceptor } from './interceptor.ts';
import type { Lease } from './lease.ts';
import type { Metadata, MetadataInit } from './metadata.ts';
import type { HedgingOptions, RetryOptions } from './repeat-options.ts';

/** Options of a call. */
export interface CallOptions {
  /**
   * Time limit in ms from now, including connecting and waiting; finite, at least 0. Default: that of the
   * client or channel, else none.
   */
  timeoutMs?: number | undefined;
  /** Cancels the call, which then rejects with CANCELLED and the signal's reason as `cause`. */
  signal?: AbortSignal | undefined;
  metadata?: MetadataInit | undefined;
  /** Called with the metadata that the server sent before its response, if any, before the call settles. */
  onHeader?: ((header: Metadata) => void) | undefined;
  /** Called with the metadata that the server sent after its response, if any, before the call settles. */
  onTrailer?: ((trailer: Metadata) => void) | undefined;
  /**
   * The context of the handler that makes this call: the call then ends with the handler's deadline, and is
   * cancelled when the handler's caller cancels or disconnects.
   */
  context?: HandlerContext | undefined;
  /**
   * Waits for a connection until the time limit, even if connection attempts fail. Default false: without a
   * connection the call fails with the first failed attempt.
   */
  waitForReady?: boolean | undefined;
  /** For the interceptors of the client: typed values that stay in this process. */
  values?: ContextValues | undefined;
  /**
   * Repeats the call after a failure. Allowed for methods with an idempotency level, or when the client sets
   * `idempotent`; with `idempotent: false` the call is repeated only when no handler can have run. `false`
   * disables the client's default.
   */
  retry?: RetryOptions | false | undefined;
  /** Makes the call several times and takes the first response; for methods with an idempotency level. */
  hedging?: HedgingOptions | false | undefined;
  /**
   * Memory for the response: its `bytes` fields become views of this lease, each at a multiple of 64 bytes,
   * whatever their size. If the call is cancelled and the server does not release the memory, the lease is
   * lost: `released` is true.
   */
  into?: Lease | undefined;
  /**
   * Chooses the result when a response does not fit `into`. `error` (default): the call fails with
   * RESOURCE_EXHAUSTED, which says how much memory it needs; its handler has run. `lease`: the response comes
   * with a lease of its own, and `leaseOf(response)` differs from `into`.
   */
  intoOverflow?: 'error' | 'lease' | undefined;
}

/** Options of a stream: as for calls, but without memory for the response; and it is made only once. */
export type StreamOptions = Omit<CallOptions, 'into' | 'intoOverflow' | 'retry' | 'hedging'>;

/** The argument of streaming methods: generators and arrays, for example. */
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
 * The client of a service: a function per method. It returns a single response as a promise, and a stream of
 * responses as an async iterable that can be read once and starts when it is first read.
 */
export type Client<D extends ServiceDefinition> = {
  readonly [K in keyof D['methods']]: ClientFunction<D['methods'][K]>;
};

/** Options that the calls of every kind of client understand. */
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
 * A client of the service from any library: clients of this package, of nice-grpc and of connect-es can be
 * assigned to it. For code that works with any of them; it is limited to what all of them have.
 */
export type PortableClient<D extends ServiceDefinition> = {
  readonly [K in keyof D['methods']]: PortableFunction<D['methods'][K]>;
};

/**
 * The handlers of a service: a function per method that returns the response or a promise of it or, for a
 * stream of responses, an iterable (a generator).
 */
export type Handlers<D extends ServiceDefinition> = {
  [K in keyof D['methods']]: HandlerFunction<D['methods'][K]>;
};

/** Default options of a client's calls. */
export interface MethodDefaults
  extends Omit<CallOptions, 'signal' | 'context' | 'into' | 'intoOverflow' | 'values'> {
  /**
   * Whether repeating the call does no harm, so that hedging and every retry is allowed. Default:
   * `idempotency_level` of the .proto. `false` with `retry` repeats only calls that have not run.
   */
  readonly idempotent?: boolean | undefined;
  /**
   * Interceptors around each call, outermost first: those of the channel, then those of `*`, then those of
   * the method.
   */
  readonly interceptors?: readonly Interceptor[] | undefined;
}

/** Options for every call of a client (`*`) or for one method. */
export type ClientDefaults<D extends ServiceDefinition> = {
  readonly [K in keyof D['methods'] | '*']?: MethodDefaults;
};
