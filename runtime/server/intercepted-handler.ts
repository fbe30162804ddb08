/**
 * A handler with interceptors around it, in the shape of a handler: the rest of the server does not know of
 * them. Made by `server.add` for services that have some.
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

/** What all copies of the request have in common. */
interface HandledCall extends ChainedCall {
  /** The request as the outermost interceptor has got it. */
  request: RpcRequest | undefined;
}

type HandledRequest = ChainedRequest<HandledCall>;

/**
 * The signal is made when an interceptor asks for it: those that do not should not pay for it. A property of
 * the request itself, since copies (`{ ...request }`) have no others; and one function for all requests,
 * since V8 makes a class of objects for each other one.
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
    new RpcError(Status.INTERNAL, `${method.fullName}: an interceptor took the message away`);

  const chain = compose(method.fullName, interceptors, stream ? carryOutStream : carryOutUnary);

  /**
   * The call that a request belongs to; its handler is going to see what interceptors have made of the
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
      // What interceptors have entered is there when a generator of the handler runs, too.
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

  /** What the outermost interceptor gets. */
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
    // Not by way of respond(): every unary call comes here, and one more async function takes as long as many
    // interceptors.
    const response = checkedResponse(method, await chain(requestOf(given, context)));
    context.answerWith(response.header, response.trailer);
    const { message } = response;
    return stream ? onlyMessage(message as AsyncIterable<unknown>, noMessage) : message;
  }

  return (method.responseStream ? streamed : single) as AnyHandler;
}
