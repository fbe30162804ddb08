/**
 * Handlers of a generated service for a server of nice-grpc, with the usual context and errors. This file
 * does not import nice-grpc, but declares the needed parts.
 */
import type { MethodDefinition, ServiceDefinition } from '../../codec/types.ts';
import type { Metadata, MetadataValue } from '../../core/metadata.ts';
import type { Handlers } from '../../core/types.ts';
import { type GrpcCall, GrpcContext, type GrpcFailure } from './context.ts';
import { type GrpcHandler, type GrpcHandlerOptions, grpcHandlers } from './handlers.ts';

interface NiceGrpcMetadata extends Iterable<[string, (string | Uint8Array)[]]> {
  append(key: string, value: never): unknown;
}

/** The CallContext of nice-grpc. */
export interface NiceGrpcContext {
  readonly metadata: NiceGrpcMetadata;
  readonly peer: string;
  readonly header: NiceGrpcMetadata;
  readonly trailer: NiceGrpcMetadata;
  readonly signal: AbortSignal;
  sendHeader(): void;
}

type NiceGrpcHandler<M> =
  M extends MethodDefinition<infer Req, infer _ReqInit, infer _Res, infer ResInit>
    ? (
        request: M['requestStream'] extends true ? AsyncIterable<Req> : Req,
        context: NiceGrpcContext,
      ) => M['responseStream'] extends true ? AsyncGenerator<ResInit, void, undefined> : Promise<ResInit>
    : never;

/** The argument of `server.add(definition, ...)` of nice-grpc. */
export type NiceGrpcHandlers<D extends ServiceDefinition> = {
  [K in keyof D['methods']]: NiceGrpcHandler<D['methods'][K]>;
};

function copyTo(target: NiceGrpcMetadata, from: Metadata): void {
  for (const [key, value] of from) target.append(key, value as never);
}

function contextOf(method: MethodDefinition, theirs: NiceGrpcContext): GrpcContext {
  const call: GrpcCall = {
    peer: theirs.peer,
    metadata: () => theirs.metadata as Iterable<[string, MetadataValue[]]>,
    // nice-grpc does not provide the time limit.
    timeoutMs: () => undefined,
    sendHeader: (header) => {
      copyTo(theirs.header, header);
      theirs.sendHeader();
    },
  };
  const context = new GrpcContext(method, call);
  if (theirs.signal.aborted) context.cancel();
  else theirs.signal.addEventListener('abort', () => context.cancel(), { once: true });
  return context;
}

function requestOf(handler: GrpcHandler, request: unknown, context: GrpcContext): unknown {
  return handler.method.requestStream ? context.requests(request as AsyncIterable<unknown>) : request;
}

/**
 * Returns an error in the form of nice-grpc's ServerError, which nice-grpc recognises by these properties.
 */
function serverError(
  { code, details, trailer }: GrpcFailure,
  theirs: NiceGrpcContext,
  cause: unknown,
): Error {
  copyTo(theirs.trailer, trailer);
  const error = new Error(details, { cause });
  error.name = 'ServerError';
  return Object.assign(error, { code, details, '@@nice-grpc': true, '@@nice-grpc:ServerError': true });
}

function single(handler: GrpcHandler) {
  return async (request: unknown, theirs: NiceGrpcContext): Promise<unknown> => {
    const context = contextOf(handler.method, theirs);
    try {
      const response = await handler.respond(requestOf(handler, request, context), context);
      copyTo(theirs.trailer, context.finish());
      return response;
    } catch (error) {
      handler.report(error, context.cancelled !== undefined);
      throw serverError(context.fail(error), theirs, error);
    }
  };
}

function streamed(handler: GrpcHandler) {
  return async function* (
    request: unknown,
    theirs: NiceGrpcContext,
  ): AsyncGenerator<unknown, void, undefined> {
    const context = contextOf(handler.method, theirs);
    try {
      for await (const message of handler.stream(requestOf(handler, request, context), context)) {
        context.sendHeader();
        yield handler.checked(message);
      }
      copyTo(theirs.trailer, context.finish());
    } catch (error) {
      handler.report(error, context.cancelled !== undefined);
      throw serverError(context.fail(error), theirs, error);
    }
  };
}

/**
 * Returns `handlers` for `server.add(definition, ...)` of nice-grpc. Missing methods answer UNIMPLEMENTED.
 */
export function toNiceGrpcHandlers<D extends ServiceDefinition>(
  definition: D,
  handlers: Partial<Handlers<D>>,
  options: GrpcHandlerOptions = {},
): NiceGrpcHandlers<D> {
  const entries = grpcHandlers(definition, handlers, options).map(([name, handler]) => [
    name,
    handler.method.responseStream ? streamed(handler) : single(handler),
  ]);
  return Object.fromEntries(entries) as NiceGrpcHandlers<D>;
}
