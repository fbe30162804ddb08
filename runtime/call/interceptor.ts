/**
 * Interceptors: functions around calls, of one shape for clients and servers. The types that people write them with, and how several become one
 * function. Composed when a client is made or a service added; calls without interceptors know nothing of them.
 */
import type { MethodDefinition, ServiceDefinition } from '../codec/types.ts';
import type { ContextValues } from './context-values.ts';
import type { Metadata } from './metadata.ts';
import type { HandlerContext } from './server-call.ts';

interface AnyRequest {
  readonly side: 'client' | 'server';
  readonly service: ServiceDefinition;
  readonly method: MethodDefinition;
  /** Who is at the other end: on a client the channel's address, on a server that of the context. */
  readonly peer: string;
  /** Metadata of the request. May be changed in place; on a client until `next` is called. */
  readonly header: Metadata;
  /** Gives the call up. On a client undefined when the caller gave none. */
  readonly signal: AbortSignal | undefined;
  /** Client: time limit of the whole call in ms, from its start, further attempts included. Server: time left; a change has no effect. Undefined: none. */
  readonly timeoutMs: number | undefined;
  readonly values: ContextValues;
  /** Server: what the handler gets. Client: that of the handler that makes the call, if it was passed on. */
  readonly context: HandlerContext | undefined;
  /** What else the caller of a client has given; passed on as it is. */
  readonly options: object | undefined;
}

interface AnyResponse {
  readonly service: ServiceDefinition;
  readonly method: MethodDefinition;
  /** Of a stream: complete with its first message. May be changed in place before it has been sent on. */
  readonly header: Metadata;
  /** Of a stream: complete behind its last message. */
  readonly trailer: Metadata;
}

/** One message. */
interface One {
  readonly stream: false;
  readonly message: unknown;
}

/** The method has a stream on at least one side; a single message on the other is an iterable of one. */
interface Several {
  readonly stream: true;
  readonly message: AsyncIterable<unknown>;
}

export type UnaryRequest = AnyRequest & One;
export type StreamRequest = AnyRequest & Several;
export type RpcRequest = UnaryRequest | StreamRequest;
export type UnaryResponse = AnyResponse & One;
export type StreamResponse = AnyResponse & Several;
export type RpcResponse = UnaryResponse | StreamResponse;

export type Next = (request: RpcRequest) => Promise<RpcResponse>;

/**
 * `next` carries out the call: inner interceptors, then the network on a client or the handler on a server. Called once per method; what it returns is called for
 * each call. It may answer without `next`, call it several times, or give it a changed copy of the request: `next({ ...request, message })`.
 */
export type Interceptor = (next: Next) => Next;

/** The first interceptor is the outermost. */
export function compose(interceptors: readonly Interceptor[], innermost: Next): Next {
  return interceptors.reduceRight((next, interceptor) => interceptor(next), innermost);
}

/** Throws a TypeError for what is no list of functions. */
export function checkedInterceptors(where: string, given: unknown): readonly Interceptor[] {
  if (given === undefined) return [];
  if (!Array.isArray(given) || given.some((each) => typeof each !== 'function')) {
    throw new TypeError(`${where}: interceptors must be a list of functions`);
  }
  return [...given];
}

/** Refuses what an interceptor has resolved with when that is no response of the method. */
export function checkedResponse(request: RpcRequest, response: RpcResponse): RpcResponse {
  if (typeof response === 'object' && response !== null && response.stream === request.stream)
    return response;
  throw new TypeError(
    `${request.method.fullName}: an interceptor gave no response: return what next() resolved with, or a copy of it`,
  );
}

/** The single message of a stream, which is read to its end, so that everybody on the way sees it. Throws what `none` makes when there is none. */
export async function onlyMessage(messages: AsyncIterable<unknown>, none: () => Error): Promise<unknown> {
  let only: unknown = none;
  for await (const message of messages) only = message;
  if (only === none) throw none();
  return only;
}

/** A message, or the promise of one, as an iterable. */
export function iterableOfOne(message: unknown): AsyncIterable<unknown> {
  // An interceptor may drop the iterable; nobody then hears of a rejection.
  Promise.resolve(message).catch(() => undefined);
  return one(message);
}

async function* one(message: unknown): AsyncGenerator<unknown> {
  yield await message;
}

/** Any iterable as an asynchronous one. */
export function asyncIterable(messages: AsyncIterable<unknown> | Iterable<unknown>): AsyncIterable<unknown> {
  return Symbol.asyncIterator in messages ? messages : each(messages);
}

async function* each(messages: Iterable<unknown>): AsyncGenerator<unknown> {
  yield* messages;
}
