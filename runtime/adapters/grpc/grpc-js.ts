/**
 * Handlers of a generated service for a server of grpc-js, which uses callbacks and Node streams. This file
 * does not import grpc-js, so that any copy of grpc-js works. It declares the parts of grpc-js that it needs,
 * and creates Metadata with the class of the call's own metadata.
 */
import type { Duplex } from 'node:stream';
import type { ServiceDefinition } from '../../codec/types.ts';
import type { Metadata, MetadataValue } from '../../core/metadata.ts';
import type { Handlers } from '../../core/types.ts';
import { GrpcContext } from './context.ts';
import { type GrpcHandler, type GrpcHandlerOptions, grpcHandlers } from './handlers.ts';

interface GrpcJsMetadata {
  getMap(): object;
  get(key: string): MetadataValue[];
}

/** The common part of the four kinds of calls. */
export interface GrpcJsCall {
  readonly metadata: GrpcJsMetadata;
  readonly cancelled: boolean;
  getPeer(): string;
  getDeadline(): Date | number;
  sendMetadata(metadata: never): void;
  on(event: 'cancelled', listener: () => void): unknown;
}

/** A handler of any kind, for `server.addService`. */
export type GrpcJsHandler = (call: GrpcJsCall, callback: (...answer: never[]) => void) => void;

/** The argument of `server.addService(definition.methods, ...)` of grpc-js. */
export type GrpcJsHandlers<D extends ServiceDefinition> = { [K in keyof D['methods']]: GrpcJsHandler };

/** An error in the form that grpc-js sends. */
interface GrpcJsStatus {
  readonly code: number;
  readonly details: string;
  readonly metadata: never;
}
type Callback = (error: GrpcJsStatus | null, response?: unknown, trailer?: never) => void;
/** A call as a Node stream. It streams in the directions in which the method streams. */
type GrpcJsStream = GrpcJsCall & Duplex & { readonly request: unknown; end(trailer: never): void };

function toGrpcJs(call: GrpcJsCall, from: Metadata): never {
  const made = new (
    call.metadata.constructor as new () => { add(key: string, value: MetadataValue): void }
  )();
  for (const [key, value] of from) {
    made.add(
      key,
      typeof value === 'string' ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength),
    );
  }
  return made as never;
}

function contextOf(handler: GrpcHandler, call: GrpcJsCall): GrpcContext {
  const context = new GrpcContext(handler.method, {
    peer: call.getPeer(),
    metadata: () => Object.keys(call.metadata.getMap()).map((key) => [key, call.metadata.get(key)] as const),
    timeoutMs: () => {
      const at = Number(call.getDeadline());
      return Number.isFinite(at) ? Math.max(0, at - Date.now()) : undefined;
    },
    sendHeader: (header) => call.sendMetadata(toGrpcJs(call, header)),
  });
  call.on('cancelled', () => context.cancel());
  if (call.cancelled) context.cancel();
  return context;
}

function statusOf(
  handler: GrpcHandler,
  call: GrpcJsCall,
  context: GrpcContext,
  error: unknown,
): GrpcJsStatus {
  handler.report(error, context.cancelled !== undefined);
  const { code, details, trailer } = context.fail(error);
  return { code, details, metadata: toGrpcJs(call, trailer) };
}

/** Resolves when the stream has room for another message, or when the call is cancelled. */
function roomIn(call: GrpcJsStream): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      for (const event of ['drain', 'cancelled', 'close']) call.off(event, done);
      resolve();
    };
    for (const event of ['drain', 'cancelled', 'close']) call.on(event, done);
  });
}

async function write(
  handler: GrpcHandler,
  call: GrpcJsStream,
  context: GrpcContext,
  messages: AsyncIterable<unknown> | Iterable<unknown>,
): Promise<void> {
  for await (const message of messages) {
    context.sendHeader();
    handler.checked(message);
    if (context.cancelled === undefined && !call.write(message)) await roomIn(call);
    // The error leaves the loop, which ends the handler's generator.
    if (context.cancelled !== undefined) throw context.cancelled;
  }
}

function adapted(handler: GrpcHandler): (call: GrpcJsStream, callback: Callback) => void {
  const { requestStream, responseStream } = handler.method;
  // If a handler stops reading early, the stream must stay open, because it also carries the response.
  const requestOf = (call: GrpcJsStream, context: GrpcContext): unknown =>
    requestStream ? context.requests(call.iterator({ destroyOnReturn: false })) : call.request;

  async function single(call: GrpcJsStream, callback: Callback): Promise<void> {
    const context = contextOf(handler, call);
    let response: unknown;
    let trailer: never;
    try {
      response = await handler.respond(requestOf(call, context), context);
      trailer = toGrpcJs(call, context.finish());
    } catch (error) {
      callback(statusOf(handler, call, context, error));
      return;
    }
    callback(null, response, trailer);
  }

  async function streamed(call: GrpcJsStream): Promise<void> {
    const context = contextOf(handler, call);
    try {
      await write(handler, call, context, handler.stream(requestOf(call, context), context));
      call.end(toGrpcJs(call, context.finish()));
    } catch (error) {
      call.emit('error', statusOf(handler, call, context, error));
    }
  }

  return (call, callback) => void (responseStream ? streamed(call) : single(call, callback));
}

/**
 * Returns `handlers` for `server.addService(definition.methods, ...)` of grpc-js. Missing methods answer
 * UNIMPLEMENTED.
 */
export function toGrpcJsHandlers<D extends ServiceDefinition>(
  definition: D,
  handlers: Partial<Handlers<D>>,
  options: GrpcHandlerOptions = {},
): GrpcJsHandlers<D> {
  const entries = grpcHandlers(definition, handlers, options);
  return Object.fromEntries(
    entries.map(([name, handler]) => [name, adapted(handler)]),
  ) as unknown as GrpcJsHandlers<D>;
}
