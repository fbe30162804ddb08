/**
 * The handlers of a service as both adapters run them: bound, complete, with what the user wants to hear of
 * errors.
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
   * Called with what a handler throws that is no RpcError, and with all that one of a one-way method throws.
   * `method`: `pkg.Service/Method`.
   */
  onHandlerError?: (error: unknown, method: string) => void;
}

type AnyHandler = (request: unknown, context: HandlerContext) => unknown;

/** A method that can be called: a handler for each, one that refuses where the user has none. */
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

  /** The single response. A one-way method's answer does not wait for its handler. */
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
   * A response. It is encoded here, since a server of gRPC that fails to tells nobody. Throws when it cannot
   * be sent.
   */
  checked(response: unknown): unknown {
    if (typeof response !== 'object' || response === null) {
      const what = response === undefined || response === null ? 'no response' : `a ${typeof response}`;
      throw new TypeError(`${this.method.fullName}: the handler gave ${what}`);
    }
    // See MessageCheck.
    if (this.#check.left > 0) this.#check.look(response);
    encodeAhead(this.method.output as MessageType<unknown, object>, response);
    return response;
  }

  /** The stream of responses. */
  stream(request: unknown, context: HandlerContext): AsyncIterable<unknown> | Iterable<unknown> {
    return this.#handler(request, context) as AsyncIterable<unknown> | Iterable<unknown>;
  }

  /**
   * A call has failed with `error`; `over`: since nobody waits for it any more, which an AbortError only
   * repeats.
   */
  report(error: unknown, over: boolean): void {
    if (error instanceof RpcError || (over && abortCode(error) !== undefined)) return;
    this.#errors.report(error, this.method.fullName);
  }
}

/** Throws a TypeError for a handler that is no function. */
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
