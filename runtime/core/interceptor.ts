/**
 * Interceptors: functions around calls, with the same form for clients and servers. This file has their
 * types, and combines several into one function. Combined when a client is made or a service added; calls
 * without interceptors never come here.
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
  /** The other side of the connection: on a client the channel's address, on a server that of the context. */
  readonly peer: string;
  /** Metadata of the request. May be changed in place; on a client until `next` is called. */
  readonly metadata: Metadata;
  /** Cancels the call. On a client undefined when the caller gave none. */
  readonly signal: AbortSignal | undefined;
  /**
   * Client: time limit of the whole call in ms, from its start, including repeated attempts. Server: time
   * left; changing it has no effect. Undefined for no limit.
   */
  readonly timeoutMs: number | undefined;
  readonly values: ContextValues;
  /**
   * Server: the handler's context. Client: the context of the handler that makes the call, if it was passed
   * on.
   */
  readonly context: HandlerContext | undefined;
  /** Other options that the caller of a client has given; passed on unchanged. */
  readonly options: object | undefined;
}

interface AnyResponse {
  readonly service: ServiceDefinition;
  readonly method: MethodDefinition;
  /**
   * For a stream: complete when its first message arrives. May be changed in place before it has been sent.
   */
  readonly header: Metadata;
  /** For a stream, the trailer is complete after the last message. */
  readonly trailer: Metadata;
}

/** A unary request or response. */
interface One {
  readonly stream: false;
  readonly message: unknown;
}

/** A method with a stream on at least one side; a single message on the other side is an iterable of one. */
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
 * `next` carries out the call: inner interceptors, then the network on a client or the handler on a server.
 * The interceptor is called once per method; the function that it returns is called for each call. It may
 * answer without `next`, call it several times, or pass it a changed copy of the request: `next({ ...request,
 * message })`.
 */
export type Interceptor = (next: Next) => Next;

/** State shared by the interceptors of one call. All copies of the request carry it, under this symbol. */
export const chained: unique symbol = Symbol('call within interceptors');

export interface ChainedCall {
  /**
   * The last result of `next` in this call. An interceptor that returns this same promise has added nothing
   * to it.
   */
  given: Promise<RpcResponse> | undefined;
  /** The same for the innermost function, which carries out the call. */
  carried: Promise<RpcResponse> | undefined;
}

/**
 * A request, or a value that an interceptor has passed instead; the state is missing when that is not a copy
 * of the request.
 */
export type ChainedRequest<Call extends ChainedCall = ChainedCall> = RpcRequest & {
  readonly [chained]?: Call;
};

/**
 * Carries out the call within all interceptors. It must be an async function, so that it never throws, and
 * must call `onFailure` before its promise rejects.
 */
export type Innermost<Call extends ChainedCall> = (
  request: ChainedRequest<Call>,
  onFailure: () => void,
) => Promise<RpcResponse>;

const ignore = (): void => undefined;

/**
 * Marks the rejection of a promise of `next` as handled, since an interceptor may drop that promise, and an
 * unhandled rejection would end the process. Call it only when the call has failed: for the stacks of errors
 * V8 follows a promise to the function that awaits it, but only while it has a single listener. This is
 * called inside the function that returns the promise, so the promise exists only one microtask later, and
 * the listener is added then. Node looks for unhandled rejections after that.
 */
function handleLater(responseOf: () => Promise<RpcResponse>): void {
  queueMicrotask(() => responseOf().catch(ignore));
}

/** Returns the `next` of the innermost interceptor. */
function carrying<Call extends ChainedCall>(innermost: Innermost<Call>): Next {
  return (request: ChainedRequest<Call>) => {
    const response = innermost(request, () => handleLater(() => response));
    // Any value may be passed to `next`; `innermost` refuses one that is not a request.
    const call = request?.[chained];
    if (call !== undefined) call.given = call.carried = response;
    return response;
  };
}

/** Returns the `next` of an interceptor around another one, whose function is `inner`. */
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
    // Most interceptors return the result of their own `next`; they need no further promise.
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
 * Combines interceptors; the first is the outermost. Throws a TypeError for one that does not return a
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

/** Throws a TypeError unless it is a list of functions. */
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
