/** The handlers of a server by method id. `server.add` fills the table, and each request reads it. */

import { noMessage } from '../boundary/outgoing/plain-types.ts';
import { noteMethod } from '../boundary/traces/method-names.ts';
import { methodId } from '../codec/service/method-id.ts';
import type { MessageType, MethodDefinition, MethodForm, ServiceDefinition } from '../codec/types.ts';
import { unimplemented, unnamed } from '../core/errors/failure.ts';
import type { Interceptor } from '../core/interceptor.ts';
import { MessageCheck, responseCheck } from '../core/message-check.ts';
import { processWarning, type Warn } from '../core/warnings.ts';
import type { Authorization } from './authorize.ts';
import { warnOfNames } from './handler-names.ts';
import { interceptedHandler } from './intercepted-handler.ts';
import type { AnyHandler, ServerMethod, StreamMethod } from './server-method.ts';
import { StaleRequests } from './stale-requests.ts';
import { TimeLimits } from './time-limits.ts';

/** The check for the response that ends a stream, which has no message. */
const noCheck = new MessageCheck('', noMessage, () => undefined);
noCheck.left = 0;

const codecNames = { PROTOBUF: 'protobuf', MSGPACK: 'MessagePack' } as const;

/**
 * Returns the message formats that a server accepts for a method. Protobuf is always accepted, because gRPC
 * and clients that do not know the option `preferred_codec` use it.
 */
function formsOf(method: MethodDefinition): readonly MethodForm[] {
  return method.preferred === undefined ? [method] : [method, method.preferred];
}

export class HandlerTable {
  readonly limits: TimeLimits;
  readonly #services = new Set<string>();
  readonly #paths = new Map<number, string>();
  /** Error texts by the ids that methods would have in codecs that are not accepted here. */
  readonly #otherCodecs = new Map<number, string>();
  readonly #methods = new Map<number, ServerMethod>();
  readonly #streams = new Map<number, StreamMethod>();

  readonly #warn: Warn;
  readonly #authorization: Authorization | undefined;

  /** `limits` are the time limits of calls. `warn` is called for mistakes in responses. */
  constructor(
    limits: TimeLimits = new TimeLimits(undefined, undefined),
    warn: Warn = processWarning,
    authorization?: Authorization,
  ) {
    this.#authorization = authorization;
    this.limits = limits;
    this.#warn = warn;
  }

  /**
   * Adds the methods of `service` for which `handlers` has a function. The other methods answer
   * UNIMPLEMENTED. When this function throws, it has added no method.
   */
  add(service: ServiceDefinition, handlers: object, interceptors: readonly Interceptor[] = []): void {
    if (typeof handlers !== 'object' || handlers === null) {
      throw new TypeError(`${service.fullName}: handlers must be an object or a class instance`);
    }
    if (this.#services.has(service.fullName)) {
      throw new Error(`${service.fullName} has been added already: a service has one set of handlers`);
    }
    this.#authorization?.check(service);
    const found: [MethodDefinition, AnyHandler][] = [];
    for (const [name, method] of Object.entries(service.methods)) {
      for (const { id } of formsOf(method)) {
        const other = this.#paths.get(id);
        if (other !== undefined)
          throw new Error(`${method.fullName} has the same method id as ${other}: rename one of them`);
      }
      const handler = (handlers as Record<string, unknown>)[name];
      if (handler === undefined || handler === null) continue;
      if (typeof handler !== 'function') {
        throw new TypeError(`${service.fullName}: handler ${name} is a ${typeof handler}, not a function`);
      }
      const plain = handler as AnyHandler;
      const none = interceptors.length === 0;
      const whole = none ? plain : interceptedHandler(service, method, plain, handlers, interceptors);
      found.push([method, this.#authorization?.around(method.fullName, whole) ?? whole]);
    }
    this.#services.add(service.fullName);
    warnOfNames(service, handlers, this.#warn);
    for (const method of Object.values(service.methods)) this.#note(method);
    for (const [method, handler] of found)
      for (const form of formsOf(method)) this.#addForm(method, form, handler, handlers);
  }

  #note(method: MethodDefinition): void {
    const { fullName } = method;
    const ids = formsOf(method).map(({ id }) => id);
    for (const id of ids) {
      this.#paths.set(id, fullName);
      noteMethod(id, fullName);
    }
    for (const codec of ['PROTOBUF', 'MSGPACK'] as const) {
      const id = methodId(fullName, codec);
      if (!ids.includes(id))
        this.#otherCodecs.set(
          id,
          `${fullName} was called with ${codecNames[codec]} messages, but its definition on this server has another ` +
            'preferred_codec. Generate both sides from the same .proto, servers first',
        );
    }
  }

  #addForm(
    method: MethodDefinition,
    { id, input, output }: MethodForm,
    handler: AnyHandler,
    self: object,
  ): void {
    const { fullName, requestStream, responseStream } = method;
    const unary: ServerMethod = {
      path: fullName,
      requestType: input as MessageType<unknown, never>,
      responseType: output,
      handler,
      self,
      oneWay: method.options.oneWay === true,
      check: responseCheck(fullName, output, this.#warn),
      stale: new StaleRequests(fullName, this.#warn),
    };
    if (requestStream || responseStream) {
      const open = { ...unary, responseType: noMessage, oneWay: false, check: noCheck };
      this.#streams.set(id | 0, { ...unary, requestStream, responseStream, open });
    } else {
      this.#methods.set(id | 0, unary);
    }
  }

  /** Returns a unary method by its id, which is a signed 32-bit number. */
  find(id: number): ServerMethod | undefined {
    return this.#methods.get(id);
  }

  /** Returns a streaming method by its id, which is a signed 32-bit number. */
  findStream(id: number): StreamMethod | undefined {
    return this.#streams.get(id);
  }

  /** Returns the error text for an unknown id. `stream` says that the id was called as a streaming method. */
  missing(id: number, stream: boolean): string {
    const otherCodec = this.#otherCodecs.get(id >>> 0);
    if (otherCodec !== undefined && !this.#paths.has(id >>> 0)) return otherCodec;
    const name = this.#paths.get(id >>> 0) ?? unnamed(id);
    if ((stream ? this.#methods : this.#streams).has(id)) {
      return `${name} is ${stream ? 'no' : 'a'} streaming method on this server: client and server have different versions of it`;
    }
    return unimplemented(name);
  }
}
