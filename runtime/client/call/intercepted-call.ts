/**
 * A client's method with interceptors. It creates the interceptors' request from the caller's arguments, and
 * the caller's result from the interceptors' response. `createClient` uses it for methods with interceptors.
 */

import { turnNow } from '../../boundary/time/deadlines.ts';
import type { MethodDefinition, ServiceDefinition } from '../../codec/types.ts';
import { ContextValues } from '../../core/context-values.ts';
import { refusedCall } from '../../core/errors/failing.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { iterableOfOne, onlyMessage, RequestMessages } from '../../core/intercepted-messages.ts';
import {
  type ChainedRequest,
  chained,
  checkedRequest,
  checkedResponse,
  compose,
  type Interceptor,
  type RpcResponse,
} from '../../core/interceptor.ts';
import { Metadata } from '../../core/metadata.ts';
import type { CallOptions } from '../../core/types.ts';
import { sentOf } from './call-guard.ts';
import { callTimeoutMs, InnerOptions } from './call-options.ts';
import { InterceptedState } from './intercepted-state.ts';

/** The function of a method that createClient creates. */
export type ClientMethodFunction = (message: unknown, options?: CallOptions) => unknown;

type Stateful = ChainedRequest<InterceptedState>;
const ignore = (): void => undefined;

/** Returns the time that the call has left in ms. Later attempts share the deadline of the first attempt. */
function leftMs(request: Stateful): number | undefined {
  const { timeoutMs } = request;
  const startedMs = request[chained]?.guard.startedMs;
  if (timeoutMs === undefined || startedMs === undefined) return timeoutMs;
  return Math.max(0, timeoutMs - (turnNow() - startedMs));
}

/** Returns the options of the innermost call: the caller's options with the interceptors' changes. */
function innerOptions(
  request: Stateful,
  onHeader: (header: Metadata) => void,
  onTrailer: (trailer: Metadata) => void,
): InnerOptions {
  const { options, [chained]: call } = request;
  return new InnerOptions(options, call?.options, request, leftMs(request), onHeader, onTrailer);
}

/** Tells the source of the messages that they will no longer be read. */
async function leave(messages: AsyncIterator<unknown> | undefined): Promise<void> {
  await messages?.return?.();
}

function fill(metadata: Metadata, received: Metadata): void {
  for (const [key, value] of received) metadata.append(key, value);
}

/**
 * Returns the method with interceptors. `invoke` is the method without interceptors, and `peer` is the
 * address of the channel.
 */
export function interceptedCall(
  service: ServiceDefinition,
  method: MethodDefinition,
  defaultTimeoutMs: number,
  interceptors: readonly Interceptor[],
  peer: string,
  invoke: ClientMethodFunction,
): ClientMethodFunction {
  const stream = method.requestStream || method.responseStream;
  const noMessage = () =>
    new RpcError(Status.INTERNAL, `${method.fullName}: an interceptor removed the message`);

  async function carryOutUnary(request: Stateful, onFailure: () => void): Promise<RpcResponse> {
    let call: InterceptedState | undefined;
    try {
      checkedRequest(method, request);
      let header: Metadata | undefined;
      let trailer: Metadata | undefined;
      const options = innerOptions(
        request,
        (received) => {
          header = received;
          if (call !== undefined) call.header = received;
        },
        (received) => {
          trailer = received;
        },
      );
      const state = request[chained];
      state?.guard.enter(request);
      // From now on the call counts as started.
      call = state;
      if (call !== undefined) call.header = undefined;
      const message = await invoke(request.message, options);
      call?.guard.leave('yes');
      return {
        stream: false,
        service,
        method,
        message,
        header: header ?? new Metadata(),
        trailer: trailer ?? new Metadata(),
      };
    } catch (error) {
      call?.guard.leave(sentOf(error));
      onFailure();
      throw error;
    }
  }

  async function carryOutStream(request: Stateful, onFailure: () => void): Promise<RpcResponse> {
    try {
      checkedRequest(method, request);
      // These objects are filled when header and trailer arrive, which is after the response.
      const header = new Metadata();
      const trailer = new Metadata();
      const options = innerOptions(
        request,
        (received) => fill(header, received),
        (received) => fill(trailer, received),
      );
      const call = request[chained];
      if (call !== undefined) {
        call.header = header;
        call.guard.enter(request);
      }
      const messages = request.message as AsyncIterable<unknown>;
      const argument = method.requestStream ? messages : await onlyMessage(messages, noMessage);
      const result = invoke(argument, options);
      call?.guard.leave('maybe');
      const message = method.responseStream ? (result as AsyncIterable<unknown>) : iterableOfOne(result);
      return { stream: true, service, method, message, header, trailer };
    } catch (error) {
      onFailure();
      throw error;
    }
  }

  const chain = compose(method.fullName, interceptors, stream ? carryOutStream : carryOutUnary);

  function messagesOf(given: unknown): AsyncIterable<unknown> {
    return method.requestStream ? new RequestMessages(method.fullName, given) : iterableOfOne(given);
  }

  /**
   * Returns the request for the outermost interceptor. A single literal creates it, so that all requests have
   * the same hidden class.
   */
  function requestOf(given: unknown, options: CallOptions, call: InterceptedState): Stateful {
    return {
      side: 'client',
      stream,
      message: stream ? messagesOf(given) : given,
      service,
      method,
      peer,
      metadata: new Metadata(options.metadata),
      signal: options.signal,
      timeoutMs: call.timeoutMs < 0 ? undefined : call.timeoutMs,
      values: options.values ?? new ContextValues(options.context?.values),
      context: options.context,
      options,
      [chained]: call,
    } as Stateful;
  }

  const begin = (options: CallOptions) =>
    new InterceptedState(options, method.fullName, callTimeoutMs(options, defaultTimeoutMs));

  async function checked(result: Promise<RpcResponse>): Promise<RpcResponse> {
    return checkedResponse(method, await result);
  }

  async function unary(given: unknown, options: CallOptions): Promise<unknown> {
    let call: InterceptedState;
    try {
      call = begin(options);
    } catch (error) {
      return refusedCall(error);
    }
    try {
      const result = chain(requestOf(given, options, call));
      const response = call.isCarriedBy(result) ? await result : await call.guard.wait(checked(result));
      call.tellHeader(response.header);
      call.tellTrailer(response.trailer);
      return response.message;
    } catch (error) {
      call.tellOfFailure(error);
      throw error;
    } finally {
      call.guard.end();
    }
  }

  async function* streamed(given: unknown, options: CallOptions): AsyncGenerator<unknown> {
    let call: InterceptedState;
    try {
      call = begin(options);
    } catch (error) {
      return refusedCall(error);
    }
    const { guard } = call;
    let messages: AsyncIterator<unknown> | undefined;
    try {
      const response = await guard.wait(checked(chain(requestOf(given, options, call))));
      messages = (response.message as AsyncIterable<unknown>)[Symbol.asyncIterator]();
      for (;;) {
        const next = await guard.wait(messages.next());
        call.tellHeader(response.header);
        if (next.done === true) break;
        yield next.value;
      }
      messages = undefined;
      call.tellTrailer(response.trailer);
    } catch (error) {
      const left = leave(messages).catch(ignore);
      messages = undefined;
      // This code does not wait after the end of the call, because an interceptor that hangs would never
      // finish reading its messages.
      if (!guard.late) await left;
      call.tellOfFailure(error);
      throw error;
    } finally {
      // If `messages` is still set, the caller has left the loop.
      if (messages !== undefined) await guard.wait(leave(messages));
      guard.end();
    }
  }

  if (!stream) return (given, options = {}) => unary(given, options);
  return method.responseStream
    ? (given, options = {}) => streamed(given, options)
    : (given, options = {}) => onlyMessage(streamed(given, options), noMessage);
}
