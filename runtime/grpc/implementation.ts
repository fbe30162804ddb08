/**
 * Handlers of a generated service as an implementation for a nice-grpc server, so that the same handlers serve gRPC clients. Nothing of nice-grpc is
 * imported: what is needed of it is described here.
 */

import type { HandlersOf } from '../api/types.ts';
import { ContextValues } from '../call/context-values.ts';
import { Metadata, type MetadataValue } from '../call/metadata.ts';
import { RpcError } from '../call/rpc-error.ts';
import type { HandlerContext } from '../call/server-call.ts';
import { Status } from '../call/status.ts';
import { detailsKey, encodeDetails } from '../call/status-details.ts';
import type { MethodDefinition, ServiceDefinition } from '../codec/types.ts';

interface GrpcMetadata extends Iterable<[string, (string | Uint8Array)[]]> {
  append(key: string, value: never): unknown;
}

/** nice-grpc's CallContext. */
export interface GrpcCallContext {
  readonly metadata: GrpcMetadata;
  readonly peer: string;
  readonly header: GrpcMetadata;
  readonly trailer: GrpcMetadata;
  readonly signal: AbortSignal;
  sendHeader(): void;
}

type Implementation<M> =
  M extends MethodDefinition<infer Req, infer _ReqInit, infer _Res, infer ResInit>
    ? (
        request: M['requestStream'] extends true ? AsyncIterable<Req> : Req,
        context: GrpcCallContext,
      ) => M['responseStream'] extends true ? AsyncGenerator<ResInit, void, undefined> : Promise<ResInit>
    : never;

export type GrpcImplementation<D extends ServiceDefinition> = {
  [K in keyof D['methods']]: Implementation<D['methods'][K]>;
};

function copyTo(target: GrpcMetadata, from: Metadata): void {
  for (const [key, value] of from) target.append(key, value as never);
}

/** What a handler sees of a gRPC call. nice-grpc does not tell the deadline; the signal fires when it passes. */
class GrpcContext implements HandlerContext {
  readonly method: string;
  readonly metadata = new Metadata();
  readonly header = new Metadata();
  readonly trailer = new Metadata();
  readonly values: ContextValues = new ContextValues();
  readonly #call: GrpcCallContext;
  #headerSent = false;

  constructor(method: string, call: GrpcCallContext) {
    this.method = method;
    this.#call = call;
    for (const [key, values] of call.metadata)
      for (const value of values) this.metadata.append(key, value as MetadataValue);
  }

  get peer(): string {
    return this.#call.peer;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  timeoutMs(): number | undefined {
    return undefined;
  }

  sendHeader(): void {
    this.giveHeader();
    this.#call.sendHeader();
  }

  /** Before the first response. */
  giveHeader(): void {
    if (this.#headerSent) return;
    this.#headerSent = true;
    copyTo(this.#call.header, this.header);
  }

  giveTrailer(): void {
    this.giveHeader();
    copyTo(this.#call.trailer, this.trailer);
  }

  /** Ends the call with what the handler threw, in the form that nice-grpc sends on. */
  fail(error: unknown): Error {
    const known = error instanceof RpcError ? error : undefined;
    this.giveTrailer();
    if (known !== undefined) {
      copyTo(this.#call.trailer, known.metadata);
      if (known.details.length > 0) {
        const bytes = encodeDetails(known.code, known.rawMessage, known.details);
        this.#call.trailer.append(detailsKey, bytes as never);
      }
    }
    const code = known?.code ?? Status.INTERNAL;
    const details = known?.rawMessage ?? `${this.method}: the handler failed`;
    const sent = new Error(details, { cause: error });
    sent.name = 'ServerError';
    return Object.assign(sent, { code, details, '@@nice-grpc': true, '@@nice-grpc:ServerError': true });
  }
}

type AnyHandler = (request: unknown, context: HandlerContext) => unknown;

function unary(path: string, handler: AnyHandler) {
  return async (request: unknown, call: GrpcCallContext): Promise<unknown> => {
    const context = new GrpcContext(path, call);
    try {
      const response = await handler(request, context);
      context.giveTrailer();
      return response;
    } catch (error) {
      throw context.fail(error);
    }
  };
}

function streaming(path: string, handler: AnyHandler) {
  return async function* (request: unknown, call: GrpcCallContext): AsyncGenerator<unknown, void, undefined> {
    const context = new GrpcContext(path, call);
    try {
      for await (const message of handler(request, context) as AsyncIterable<unknown>) {
        context.giveHeader();
        yield message;
      }
      context.giveTrailer();
    } catch (error) {
      throw context.fail(error);
    }
  };
}

/** `handlers` for `server.add(toGrpcDefinition(definition), ...)` of nice-grpc. Methods that they lack answer UNIMPLEMENTED. */
export function toGrpcImplementation<D extends ServiceDefinition>(
  definition: D,
  handlers: Partial<HandlersOf<D>>,
): GrpcImplementation<D> {
  const entries = Object.entries(definition.methods).map(([name, { path, responseStream }]) => {
    const given = (handlers as Record<string, AnyHandler | undefined>)[name];
    const handler: AnyHandler =
      given?.bind(handlers) ??
      (() => {
        throw new RpcError(Status.UNIMPLEMENTED, `${path} is not implemented by this server`);
      });
    return [name, responseStream ? streaming(path, handler) : unary(path, handler)];
  });
  return Object.fromEntries(entries) as GrpcImplementation<D>;
}
