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
   * Time limit in ms from now, including connecting and waiting. A finite number of at least 0. Default: the
   * limit of the client or channel, or no limit if they have none.
   */
  timeoutMs?: number | undefined;
  /** Cancels the call, which then rejects with CANCELLED and the signal's reason as `cause`. */
  signal?: AbortSignal | undefined;
  metadata?: MetadataInit | undefined;
  /** Receives the metadata that the server sent before its response, if any, before the call settles. */
  onHeader?: ((header: Metadata) => void) | undefined;
  /** Receives the metadata that the server sent after its response, if any, before the call settles. */
  onTrailer?: ((trailer: Metadata) => void) | undefined;
  /**
   * The context of the handler that makes this call. The call then ends at the handler's deadline at the
   * latest. It is cancelled when the handler's caller cancels or disconnects.
   */
  context?: HandlerContext | undefined;
  /**
   * Waits for a connection until the time limit, even if connection attempts fail. Default false: a call
   * without a connection fails when the first connection attempt fails.
   */
  waitForReady?: boolean | undefined;
  /** Typed values for the interceptors of the client. The values stay in this process. */
  values?: ContextValues | undefined;
  /**
   * Repeats the call after a failure. Retries are allowed for methods with an idempotency level, or when the
   * client sets `idempotent`. With `idempotent: false` the call is repeated only when no handler can have
   * run. `retry: false` disables the client's default.
   */
  retry?: RetryOptions | false | undefined;
  /**
   * Makes the call several times and takes the first response. Hedging is allowed for methods with an
   * idempotency level.
   */
  hedging?: HedgingOptions | false | undefined;
  /**
   * Memory for the response. All `bytes` fields of the response, large or small, become views of this lease,
   * each at a multiple of 64 bytes. If the call is cancelled and the server does not release the memory, the
   * lease is lost, and `released` becomes true.
   */
  into?: Lease | undefined;
  /**
   * Says what happens when a response does not fit `into`. With `error` (default), the call fails with
   * RESOURCE_EXHAUSTED after its handler has run, and the error says how much memory the response needs. With
   * `lease`, the response comes with a lease of its own, and `leaseOf(response)` differs from `into`.
   */
  intoOverflow?: 'error' | 'lease' | undefined;
}

/** Options of a stream: the options of a call without memory for the response, retries and hedging. */
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
 * The client of a service: one function per method. The function returns a single response as a promise. It
 * returns a stream of responses as an async iterable that can be read once; the call starts when the iterable
 * is first read.
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
 * A client of the service from any library. Clients of this package, of nice-grpc and of connect-es can be
 * assigned to this type, and code that uses it works with all of them. It has only the options that all three
 * have.
 */
export type PortableClient<D extends ServiceDefinition> = {
  readonly [K in keyof D['methods']]: PortableFunction<D['methods'][K]>;
};

/**
 * The handlers of a service: one function per method. The function returns the response or a promise of the
 * response. For a stream of responses it returns an iterable, for example a generator.
 */
export type Handlers<D extends ServiceDefinition> = {
  [K in keyof D['methods']]: HandlerFunction<D['methods'][K]>;
};

/** Default options of a client's calls. */
export interface MethodDefaults
  extends Omit<CallOptions, 'signal' | 'context' | 'into' | 'intoOverflow' | 'values'> {
  /**
   * Whether repeating the call does no harm. `true` allows hedging and every retry. With `false`, `retry`
   * repeats only calls that have not run. Default: the `idempotency_level` of the .proto file.
   */
  readonly idempotent?: boolean | undefined;
  /**
   * Interceptors around each call, the outermost first. The interceptors of the channel come first, then
   * those for `*`, then those for the method.
   */
  readonly interceptors?: readonly Interceptor[] | undefined;
}

/** Options for all calls of a client (`*`) or for the calls of one method. */
export type ClientDefaults<D extends ServiceDefinition> = {
  readonly [K in keyof D['methods'] | '*']?: MethodDefaults;
};
