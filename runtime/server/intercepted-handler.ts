/**
 * Wraps a handler in interceptors. The result is a handler again, so the rest of the server does not have to
 * know about interceptors. `server.add` uses this file for services with interceptors.
 */

import type { MethodDefinition, ServiceDefinition } from '../codec/types.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { promiseOf } from '../core/foreign.ts';
import { asyncIterable, iterableOfOne, onlyMessage, RequestMessages } from '../core/intercepted-messages.ts';
import {
  type ChainedCall,
  type ChainedRequest,
  chained,
  checkedRequest,
  checkedResponse,
  compose,
  type Interceptor,
  type RpcRequest,
  type RpcResponse,
} from '../core/interceptor.ts';
import { iteratedIn, Scope } from '../core/scopes.ts';
import { ServerCall } from './server-call.ts';
import type { AnyHandler } from './server-method.ts';

/** The state that all copies of the request share. */
interface HandledCall extends ChainedCall {
  /** The request that was passed to the outermost interceptor. */
  request: RpcRequest | undefined;
}

type HandledRequest = ChainedRequest<HandledCall>;

/**
 * A getter that creates the signal when an interceptor reads it, so that calls without such an interceptor do
 * not create one. It is an own property of the request, because copies (`{ ...request }`) contain only own
 * properties. All requests share one function, because V8 would create a hidden class for each further
 * function.
 */
const lazySignal: PropertyDescriptor & ThisType<RpcRequest> = {
  get() {
    return this.context?.signal;
  },
  enumerable: true,
  configurable: true,
};

export function interceptedHandler(
  service: ServiceDefinition,
  method: MethodDefinition,
  handler: AnyHandler,
  self: object,
  interceptors: readonly Interceptor[],
): AnyHandler {
  const stream = method.requestStream || method.responseStream;
  const noMessage = () =>
    new RpcError(Status.INTERNAL, `${method.fullName}: an interceptor removed the message`);

  const chain = compose(method.fullName, interceptors, stream ? carryOutStream : carryOutUnary);

  /**
   * Returns the call of a request. Passes to the handler the changes that the interceptors have made to the
   * request.
   */
  function adopted(request: HandledRequest): ServerCall {
    checkedRequest(method, request);
    const call = request.context;
    if (!(call instanceof ServerCall)) {
      throw new TypeError(
        `${method.fullName}: an interceptor made a request of its own: give next() a copy, { ...request }`,
      );
    }
    call.adopt(request, request[chained]?.request === request);
    return call;
  }

  async function carryOutUnary(request: HandledRequest, onFailure: () => void): Promise<RpcResponse> {
    try {
      const call = adopted(request);
      const { header, trailer } = call;
      call.enter();
      try {
        const result = handler.call(self, request.message, call);
        const promise = promiseOf(result);
        const message = promise === undefined ? result : await promise;
        return { stream: false, service, method, message, header, trailer };
      } finally {
        call.leave();
      }
    } catch (error) {
      onFailure();
      throw error;
    }
  }

  async function carryOutStream(request: HandledRequest, onFailure: () => void): Promise<RpcResponse> {
    try {
      const call = adopted(request);
      const { header, trailer } = call;
      const messages = request.message as AsyncIterable<unknown>;
      const argument = method.requestStream ? messages : await onlyMessage(messages, noMessage);
      // A generator of the handler must run in the async context of the interceptors, so this function keeps
      // that context.
      const scope = new Scope();
      const result = handler.call(self, argument, call);
      const message = method.responseStream
        ? iteratedIn(scope, asyncIterable(await result, `${method.fullName}: what the handler returned`))
        : iterableOfOne(result);
      return { stream: true, service, method, message, header, trailer };
    } catch (error) {
      onFailure();
      throw error;
    }
  }

  function messagesOf(given: unknown): AsyncIterable<unknown> {
    return method.requestStream ? new RequestMessages(method.fullName, given) : iterableOfOne(given);
  }

  /** Returns the request for the outermost interceptor. */
  function requestOf(given: unknown, context: ServerCall): RpcRequest {
    const call: HandledCall = { given: undefined, carried: undefined, request: undefined };
    const request = {
      side: 'server',
      stream,
      message: stream ? messagesOf(given) : given,
      service,
      method,
      peer: context.peer.toString(),
      metadata: context.metadata,
      timeoutMs: context.timeoutAtFirstMs(),
      values: context.values,
      context,
      options: undefined,
      [chained]: call,
    };
    Object.defineProperty(request, 'signal', lazySignal);
    call.request = request as unknown as RpcRequest;
    return call.request;
  }

  async function respond(given: unknown, context: ServerCall): Promise<RpcResponse> {
    const response = checkedResponse(method, await chain(requestOf(given, context)));
    context.answerWith(response.header, response.trailer);
    return response;
  }

  async function* streamed(given: unknown, context: ServerCall): AsyncGenerator<unknown> {
    yield* (await respond(given, context)).message as AsyncIterable<unknown>;
  }

  async function single(given: unknown, context: ServerCall): Promise<unknown> {
    // respond() is not called here. Every unary call runs this code, and an additional async function would
    // cost as much as many interceptors.
    const response = checkedResponse(method, await chain(requestOf(given, context)));
    context.answerWith(response.header, response.trailer);
    const { message } = response;
    return stream ? onlyMessage(message as AsyncIterable<unknown>, noMessage) : message;
  }

  return (method.responseStream ? streamed : single) as AnyHandler;
}
