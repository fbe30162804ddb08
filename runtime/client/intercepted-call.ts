/**
 * A client's method with interceptors around it: makes the request that they see out of what the caller gives, and of their response what the caller gets.
 * Made by `createClient` for methods that have some.
 */
import { clockMs } from '../clock.ts';
import type { MethodDefinition, ServiceDefinition } from '../codec/types.ts';
import { ContextValues } from '../core/context-values.ts';
import { refusedCall } from '../core/errors/failing.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { heard, textOf } from '../core/foreign.ts';
import { iterableOfOne, onlyMessage, RequestMessages } from '../core/intercepted-messages.ts';
import {
  checkedRequest,
  checkedResponse,
  compose,
  type Interceptor,
  type RpcRequest,
  type RpcResponse,
} from '../core/interceptor.ts';
import { Metadata } from '../core/metadata.ts';
import type { CallOptions } from '../core/types.ts';
import { CallGuard, sentOf } from './call-guard.ts';
import { callTimeoutMs } from './call-options.ts';

/** A method as createClient makes it. */
export type ClientMethodFunction = (message: unknown, options?: CallOptions) => unknown;

/** What a call keeps through all copies of its request. The caller hears of header and trailer once, as interceptors have left them. */
const state = Symbol('call state');
class CallState {
  /** Below 0 for none. */
  readonly timeoutMs: number;
  readonly guard: CallGuard;
  /** Of the last attempt. */
  header: Metadata | undefined;
  readonly #options: CallOptions;
  readonly #path: string;
  #toldHeader = false;
  #toldTrailer = false;

  constructor(options: CallOptions, path: string, timeoutMs: number) {
    this.timeoutMs = timeoutMs;
    this.guard = new CallGuard(path, timeoutMs, options);
    this.#options = options;
    this.#path = path;
  }

  tellHeader(header: Metadata): void {
    if (this.#toldHeader) return;
    this.#toldHeader = true;
    this.#tell(this.#options.onHeader, header);
  }

  tellTrailer(trailer: Metadata): void {
    if (this.#toldTrailer) return;
    this.#toldTrailer = true;
    this.#tell(this.#options.onTrailer, trailer);
  }

  /** A callback that throws fails the call, as it does without interceptors. */
  #tell(callback: ((metadata: Metadata) => void) | undefined, metadata: Metadata): void {
    if (callback === undefined || metadata.size === 0) return;
    try {
      heard('onHeader or onTrailer', callback(metadata));
    } catch (cause) {
      const why = textOf(cause);
      const text = `${this.#path}: the response cannot be used: ${why}`;
      throw new RpcError(Status.INTERNAL, text, { processed: 'yes', cause });
    }
  }

  tellOfFailure(error: unknown): void {
    try {
      if (this.header !== undefined) this.tellHeader(this.header);
      if (error instanceof RpcError) this.tellTrailer(error.trailer);
    } catch {
      // The caller learns of the call's own error, which comes first.
    }
  }
}
const ignore = (): void => undefined;
type Stateful = RpcRequest & { readonly [state]?: CallState };

/** Further attempts have no more time than the first. */
function leftMs(request: Stateful): number | undefined {
  const { timeoutMs } = request;
  const startedMs = request[state]?.guard.startedMs;
  if (timeoutMs === undefined || startedMs === undefined) return timeoutMs;
  return Math.max(0, timeoutMs - (clockMs() - startedMs));
}

/** Notes what becomes of a call of an interceptor. */
async function told(result: unknown, call: CallState | undefined): Promise<unknown> {
  try {
    const message = await result;
    call?.guard.leave('yes');
    return message;
  } catch (error) {
    call?.guard.leave(sentOf(error));
    throw error;
  }
}

/** Nobody reads these any more. */
async function leave(messages: AsyncIterator<unknown> | undefined): Promise<void> {
  await messages?.return?.();
}

function fill(metadata: Metadata, received: Metadata): void {
  for (const [key, value] of received) metadata.append(key, value);
}

/** `invoke` is the method without interceptors; `peer` the address of the channel. */
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
    new RpcError(Status.INTERNAL, `${method.fullName}: an interceptor took the message away`);

  const chain = compose(method.fullName, interceptors, async (request: Stateful): Promise<RpcResponse> => {
    checkedRequest(method, request);
    const header = new Metadata();
    const trailer = new Metadata();
    const options: CallOptions = {
      ...request.options,
      metadata: request.metadata,
      signal: request.signal,
      timeoutMs: leftMs(request),
      context: request.context,
      onHeader: (received) => fill(header, received),
      onTrailer: (received) => fill(trailer, received),
    };
    const call = request[state];
    if (call !== undefined) call.header = header;
    call?.guard.enter(request.timeoutMs);
    if (!request.stream) {
      const message = await told(invoke(request.message, options), call);
      return { stream: false, service, method, message, header, trailer };
    }
    const argument = method.requestStream ? request.message : await onlyMessage(request.message, noMessage);
    const result = invoke(argument, options);
    call?.guard.leave('maybe');
    const message = method.responseStream ? (result as AsyncIterable<unknown>) : iterableOfOne(result);
    return { stream: true, service, method, message, header, trailer };
  });

  async function respond(given: unknown, options: CallOptions, call: CallState): Promise<RpcResponse> {
    const messages = () =>
      method.requestStream ? new RequestMessages(method.fullName, given) : iterableOfOne(given);
    const request: Stateful = {
      side: 'client',
      ...(stream ? { stream, message: messages() } : { stream, message: given }),
      service,
      method,
      peer,
      metadata: new Metadata(options.metadata),
      signal: options.signal,
      timeoutMs: call.timeoutMs < 0 ? undefined : call.timeoutMs,
      values: options.values ?? new ContextValues(options.context?.values),
      context: options.context,
      options,
      [state]: call,
    };
    return checkedResponse(request, await chain(request));
  }

  const begin = (options: CallOptions) =>
    new CallState(options, method.fullName, callTimeoutMs(options, defaultTimeoutMs));

  async function unary(given: unknown, options: CallOptions): Promise<unknown> {
    let call: CallState;
    try {
      call = begin(options);
    } catch (error) {
      return refusedCall(error);
    }
    try {
      const response = await call.guard.wait(respond(given, options, call));
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
    let call: CallState;
    try {
      call = begin(options);
    } catch (error) {
      return refusedCall(error);
    }
    const { guard } = call;
    let messages: AsyncIterator<unknown> | undefined;
    try {
      const response = await guard.wait(respond(given, options, call));
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
      // An interceptor that hangs may never let go of them.
      if (!guard.late) await left;
      call.tellOfFailure(error);
      throw error;
    } finally {
      // Still there: the caller has left the loop.
      if (messages !== undefined) await guard.wait(leave(messages));
      guard.end();
    }
  }

  if (!stream) return (given, options = {}) => unary(given, options);
  return method.responseStream
    ? (given, options = {}) => streamed(given, options)
    : (given, options = {}) => onlyMessage(streamed(given, options), noMessage);
}
