/**
 * Interceptors are functions around calls. They have the same form for clients and servers. This file has the
 * types of interceptors, and combines several interceptors into one function. A client combines its
 * interceptors when the client is made; a server combines them when a service is added. Calls without
 * interceptors do not use this file.
 */
import type { MethodDefinition, ServiceDefinition } from '../codec/types.ts';
import type { ContextValues } from './context-values.ts';
import type { HandlerContext } from './handler-context.ts';
import { RequestMessages } from './intercepted-messages.ts';
import type { Metadata } from './metadata.ts';

interface AnyRequest {
  readonly side: 'client' | 'server';
  readonly service: ServiceDefinition;
  readonly method: MethodDefinition;
  /**
   * The other side of the connection: on a client the channel's address, on a server the address of the peer
   * in the handler's context.
   */
  readonly peer: string;
  /**
   * Metadata of the request. An interceptor may change the metadata in place, but on a client only before it
   * calls `next`.
   */
  readonly metadata: Metadata;
  /** Cancels the call. On a client this property is undefined when the caller gave no signal. */
  readonly signal: AbortSignal | undefined;
  /**
   * On a client, the time limit of the whole call in ms from the start of the call, including repeated
   * attempts. On a server, the time left in ms; changing it has no effect. It is undefined when the call has
   * no time limit.
   */
  readonly timeoutMs: number | undefined;
  readonly values: ContextValues;
  /**
   * On a server, the handler's context. On a client, the context that a handler passed to the call, if any.
   */
  readonly context: HandlerContext | undefined;
  /** On a client, the other options that the caller has given. They are passed on unchanged. */
  readonly options: object | undefined;
}

interface AnyResponse {
  readonly service: ServiceDefinition;
  readonly method: MethodDefinition;
  /**
   * The header of a stream is complete when the first message arrives. An interceptor may change the header
   * in place until it is sent.
   */
  readonly header: Metadata;
  /** The trailer of a stream is complete after the last message. */
  readonly trailer: Metadata;
}

/** A unary request or response. */
interface One {
  readonly stream: false;
  readonly message: unknown;
}

/**
 * A request or response of a method that streams requests, responses or both. A single message on the other
 * side is given as an iterable of one message.
 */
interface Several {
  readonly stream: true;
  readonly message: AsyncIterable<unknown>;
}

export type UnaryRequest = AnyRequest & One;
export type StreamRequest = AnyRequest & Several;
export type RpcRequest = UnaryRequest | StreamRequest;
export type UnaryResponse = AnyResponse & One;
export type StreamResponse = AnyResponse & Several;
export type RpcResponse = UnaryResponse | StreamResponse;

export type Next = (request: RpcRequest) => Promise<RpcResponse>;

/**
 * A function around the calls of a client or server. It is called once for each method, and the function that
 * it returns is called for each call. `next` carries out the call: it runs the inner interceptors, then the
 * network on a client or the handler on a server. The returned function may answer without `next`, may call
 * `next` several times, and may pass `next` a changed copy of the request: `next({ ...request, message })`.
 */
export type Interceptor = (next: Next) => Next;

/**
 * The property of a request for the state that the interceptors of one call share. All copies of the request
 * have this property.
 */
export const chained: unique symbol = Symbol('call within interceptors');

export interface ChainedCall {
  /**
   * The last result of `next` in this call. An interceptor that returns this same promise has added nothing
   * to it.
   */
  given: Promise<RpcResponse> | undefined;
  /** The last result of the innermost function, which carries out the call. */
  carried: Promise<RpcResponse> | undefined;
}

/**
 * A request, or the value that an interceptor has passed instead. A value that is not a copy of the request
 * lacks the shared state.
 */
export type ChainedRequest<Call extends ChainedCall = ChainedCall> = RpcRequest & {
  readonly [chained]?: Call;
};

/**
 * Carries out the call within all interceptors. It must be an async function, so that it never throws. It
 * must call `onFailure` before its promise rejects.
 */
export type Innermost<Call extends ChainedCall> = (
  request: ChainedRequest<Call>,
  onFailure: () => void,
) => Promise<RpcResponse>;

const ignore = (): void => undefined;

/**
 * Marks the rejection of a promise of `next` as handled. An interceptor may drop that promise, and an
 * unhandled rejection would end the process. This function is called only when the call has failed, because
 * the additional listener costs part of an error's stack: V8 follows a promise to the function that awaits it
 * only while the promise has a single listener. This function is called inside the function that returns the
 * promise, when the promise does not exist yet. The listener is therefore added one microtask later, before
 * Node looks for unhandled rejections.
 */
function handleLater(responseOf: () => Promise<RpcResponse>): void {
  queueMicrotask(() => responseOf().catch(ignore));
}

/** Returns the `next` of the innermost interceptor. */
function carrying<Call extends ChainedCall>(innermost: Innermost<Call>): Next {
  return (request: ChainedRequest<Call>) => {
    const response = innermost(request, () => handleLater(() => response));
    // An interceptor may pass any value to `next`. `innermost` refuses a value that is not a request.
    const call = request?.[chained];
    if (call !== undefined) call.given = call.carried = response;
    return response;
  };
}

/** Returns the `next` of an interceptor that is around another interceptor with the function `inner`. */
function around(inner: Next): Next {
  return (request: ChainedRequest) => {
    let result: Promise<RpcResponse>;
    try {
      result = inner(request);
    } catch (error) {
      const failed = Promise.reject(error);
      failed.catch(ignore);
      return failed;
    }
    const call = request?.[chained];
    // Most interceptors return the result of their own `next`. No further promise is needed then.
    if (call !== undefined && result === call.given) return result;
    const response = settled(result, () => handleLater(() => response));
    if (call !== undefined) call.given = response;
    return response;
  };
}

async function settled(result: Promise<RpcResponse>, onFailure: () => void): Promise<RpcResponse> {
  try {
    return await result;
  } catch (error) {
    onFailure();
    throw error;
  }
}

/**
 * Combines interceptors; the first is the outermost. Throws a TypeError when an interceptor does not return a
 * function.
 */
export function compose<Call extends ChainedCall>(
  path: string,
  interceptors: readonly Interceptor[],
  innermost: Innermost<Call>,
): Next {
  let next = carrying(innermost);
  let made = next;
  for (let i = interceptors.length - 1; i >= 0; --i) {
    const interceptor = interceptors[i]!;
    made = interceptor(next);
    if (typeof made !== 'function') throw notMade(path, interceptors, i, made);
    next = around(made);
  }
  return made;
}

function notMade(path: string, interceptors: readonly Interceptor[], i: number, made: unknown): TypeError {
  const { name } = interceptors[i]!;
  const which = `interceptor ${i + 1} of ${interceptors.length}${name === '' ? '' : ` (${name})`}`;
  return new TypeError(
    `${path}: ${which} returned ${typeof made}, not a function: write (next) => (request) => next(request)`,
  );
}

/**
 * Returns the given interceptors, or an empty list when none are given. Throws a TypeError when they are not
 * a list of functions.
 */
export function checkedInterceptors(where: string, given: unknown): readonly Interceptor[] {
  if (given === undefined) return [];
  if (!Array.isArray(given) || given.some((each) => typeof each !== 'function')) {
    throw new TypeError(`${where}: interceptors must be a list of functions`);
  }
  return [...given];
}

/** Throws when an interceptor has passed `next` a value that is not a request of the method. */
export function checkedRequest(method: MethodDefinition, request: RpcRequest): void {
  const stream = method.requestStream || method.responseStream;
  if (typeof request !== 'object' || request === null || request.stream !== stream)
    throw new TypeError(
      `${method.fullName}: an interceptor gave next() no request of this method: give it a copy, { ...request }`,
    );
  if (request.stream) checkMessages(method, 'gave next()', request.message);
  if (request.message instanceof RequestMessages) request.message.check();
}

/** Throws when an interceptor has resolved with a value that is not a response of the method. */
export function checkedResponse(method: MethodDefinition, response: RpcResponse): RpcResponse {
  const stream = method.requestStream || method.responseStream;
  if (typeof response !== 'object' || response === null || response.stream !== stream)
    throw new TypeError(
      `${method.fullName}: an interceptor gave no response: return what next() resolved with, or a copy of it`,
    );
  if (response.stream) checkMessages(method, 'returned', response.message);
  return response;
}

function checkMessages(method: MethodDefinition, did: string, messages: unknown): void {
  if (typeof messages === 'object' && messages !== null && Symbol.asyncIterator in messages) return;
  throw new TypeError(
    `${method.fullName}: an interceptor ${did} messages that are no async iterable: write an async function*`,
  );
}
