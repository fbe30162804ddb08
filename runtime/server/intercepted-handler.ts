/**
 * A handler with interceptors around it, in the shape of a handler: the rest of the server does not know of them. Made by `server.add` for services that
 * have some.
 */

import type { MethodDefinition, ServiceDefinition } from '../codec/types.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { asyncIterable, iterableOfOne, onlyMessage, RequestMessages } from '../core/intercepted-messages.ts';
import {
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

  const chain = compose(method.fullName, interceptors, async (request: RpcRequest): Promise<RpcResponse> => {
    checkedRequest(method, request);
    const call = request.context;
    if (!(call instanceof ServerCall)) {
      throw new TypeError(
        `${method.fullName}: an interceptor made a request of its own: give next() a copy, { ...request }`,
      );
    }
    call.adopt(request);
    const { header, trailer } = call;
    if (!request.stream) {
      call.enter();
      try {
        const message = await handler.call(self, request.message, call);
        return { stream: false, service, method, message, header, trailer };
      } finally {
        call.leave();
      }
    }
    const argument = method.requestStream ? request.message : await onlyMessage(request.message, noMessage);
    // What interceptors have entered is there when a generator of the handler runs, too.
    const scope = new Scope();
    const result = handler.call(self, argument, call);
    const message = method.responseStream
      ? iteratedIn(scope, asyncIterable(await result, `${method.fullName}: what the handler returned`))
      : iterableOfOne(result);
    return { stream: true, service, method, message, header, trailer };
  });

  async function respond(given: unknown, context: ServerCall): Promise<RpcResponse> {
    const messages = () =>
      method.requestStream ? new RequestMessages(method.fullName, given) : iterableOfOne(given);
    const request: RpcRequest = {
      side: 'server',
      ...(stream ? { stream, message: messages() } : { stream, message: given }),
      service,
      method,
      peer: String(context.peer),
      metadata: context.metadata,
      // Asked for, it is made; interceptors that do not ask should not pay for it.
      get signal() {
        return context.signal;
      },
      timeoutMs: context.timeoutMs(),
      values: context.values,
      context,
      options: undefined,
    };
    const response = checkedResponse(request, await chain(request));
    context.answerWith(response.header, response.trailer);
    return response;
  }

  async function* streamed(given: unknown, context: ServerCall): AsyncGenerator<unknown> {
    yield* (await respond(given, context)).message as AsyncIterable<unknown>;
  }

  async function single(given: unknown, context: ServerCall): Promise<unknown> {
    const { message } = await respond(given, context);
    return stream ? onlyMessage(message as AsyncIterable<unknown>, noMessage) : message;
  }

  return (method.responseStream ? streamed : single) as AnyHandler;
}
