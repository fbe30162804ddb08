/**
 * The handlers of a service in the form that both adapters run. Each handler is bound to its object, missing
 * handlers are added, and errors are passed to the user's callback.
 */
import { encodeAhead } from '../../codec/service/encoded-ahead.ts';
import type { MessageType, MethodDefinition, ServiceDefinition } from '../../codec/types.ts';
import { unimplemented } from '../../core/errors/failure.ts';
import { abortCode, RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import type { HandlerContext } from '../../core/handler-context.ts';
import { type MessageCheck, responseCheck } from '../../core/message-check.ts';
import type { Handlers } from '../../core/types.ts';
import { HandlerErrors, processWarning } from '../../core/warnings.ts';
import { warnOfNames } from '../../server/handler-names.ts';

export interface GrpcHandlerOptions {
  /**
   * Receives every error of a handler that is not an RpcError, and all errors of one-way methods. `method` is
   * `pkg.Service/Method`.
   */
  onHandlerError?: (error: unknown, method: string) => void;
}

type AnyHandler = (request: unknown, context: HandlerContext) => unknown;

/**
 * A method with its handler. When the user has no handler for the method, the handler answers UNIMPLEMENTED.
 */
export class GrpcHandler {
  readonly method: MethodDefinition;
  readonly #handler: AnyHandler;
  readonly #errors: HandlerErrors;
  readonly #check: MessageCheck;

  constructor(method: MethodDefinition, handler: AnyHandler, errors: HandlerErrors) {
    this.method = method;
    this.#handler = handler;
    this.#errors = errors;
    this.#check = responseCheck(method.fullName, method.output, processWarning);
  }

  /** Returns the single response. A one-way method answers without waiting for its handler. */
  async respond(request: unknown, context: HandlerContext): Promise<unknown> {
    if (this.method.options.oneWay !== true || this.method.requestStream) {
      return this.checked(await this.#handler(request, context));
    }
    Promise.resolve()
      .then(() => this.#handler(request, context))
      .catch((error: unknown) => this.#errors.report(error, this.method.fullName));
    return {};
  }

  /**
   * Checks and encodes a response. The response is encoded here, because a gRPC server does not report when a
   * response cannot be encoded. Throws when the response cannot be sent.
   */
  checked(response: unknown): unknown {
    if (typeof response !== 'object' || response === null) {
      const what = response === undefined || response === null ? 'no response' : `a ${typeof response}`;
      throw new TypeError(`${this.method.fullName}: the handler returned ${what}`);
    }
    // MessageCheck warns of mistakes in the first messages.
    if (this.#check.left > 0) this.#check.look(response);
    encodeAhead(this.method.output as MessageType<unknown, object>, response);
    return response;
  }

  /** Returns the stream of responses. */
  stream(request: unknown, context: HandlerContext): AsyncIterable<unknown> | Iterable<unknown> {
    return this.#handler(request, context) as AsyncIterable<unknown> | Iterable<unknown>;
  }

  /**
   * Runs when a call has failed with `error`. `over` tells that the call was cancelled. An AbortError is
   * expected then, and is not reported.
   */
  report(error: unknown, over: boolean): void {
    if (error instanceof RpcError || (over && abortCode(error) !== undefined)) return;
    this.#errors.report(error, this.method.fullName);
  }
}

/**
 * Returns the handlers of a service by the names of its methods. Throws a TypeError for a handler that is not
 * a function.
 */
export function grpcHandlers<D extends ServiceDefinition>(
  definition: D,
  handlers: Partial<Handlers<D>>,
  options: GrpcHandlerOptions,
): [string, GrpcHandler][] {
  const errors = new HandlerErrors(options.onHandlerError);
  warnOfNames(definition, handlers, processWarning);
  return Object.entries(definition.methods).map(([name, method]) => {
    const given = (handlers as Record<string, unknown>)[name];
    if (given === undefined || given === null) {
      const text = unimplemented(method.fullName);
      const missing = (): never => {
        throw new RpcError(Status.UNIMPLEMENTED, text);
      };
      return [name, new GrpcHandler({ ...method, options: {} }, missing, errors)];
    }
    if (typeof given !== 'function') {
      throw new TypeError(`${definition.fullName}: handler ${name} is a ${typeof given}, not a function`);
    }
    return [name, new GrpcHandler(method, given.bind(handlers) as AnyHandler, errors)];
  });
}
