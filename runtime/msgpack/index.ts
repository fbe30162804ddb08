/**
 * `rdma-rpc/msgpack`: services defined in TypeScript, without a `.proto`. Clients, handlers, streams, large
 * buffers and errors work as usual. Without a schema, both sides must trust each other's types.
 */

import { Method } from '../codec/service/method.ts';
import { methodId } from '../codec/service/method-id.ts';
import type { MethodDefinition, ServiceDefinition } from '../codec/types.ts';
import { msgpackType } from './msgpack-type.ts';

export { msgpackForm } from './msgpack-form.ts';
export { msgpackType } from './msgpack-type.ts';

export type MethodSpecOptions = Pick<MethodDefinition['options'], 'idempotencyLevel' | 'oneWay'>;

declare const messages: unique symbol;

/** The description of a method, without its name. */
export interface MethodSpec<Req, Res, RequestStream extends boolean, ResponseStream extends boolean> {
  readonly requestStream: RequestStream;
  readonly responseStream: ResponseStream;
  readonly options: MethodSpecOptions;
  /** A type for the compiler; the property does not exist at run time. */
  readonly [messages]?: (request: Req) => Res;
}

type Specs = Readonly<Record<string, MethodSpec<never, unknown, boolean, boolean>>>;

type Defined<S> =
  S extends MethodSpec<infer Req, infer Res, infer RequestStream, infer ResponseStream>
    ? Method<Req, Req, Res, Res, RequestStream, ResponseStream, MethodSpecOptions>
    : never;

/** The result of defineService, for `createClient` and `server.add`. */
export interface DefinedService<S extends Specs> extends ServiceDefinition {
  readonly methods: { readonly [K in keyof S]: Defined<S[K]> };
}

/** Describes a method with one request and one response. */
export function method<Req, Res>(options: MethodSpecOptions = {}): MethodSpec<Req, Res, false, false> {
  return { requestStream: false, responseStream: false, options };
}

/** Describes a method with one request and a stream of responses. */
export function serverStream<Req, Res>(options: MethodSpecOptions = {}): MethodSpec<Req, Res, false, true> {
  return { requestStream: false, responseStream: true, options };
}

/** Describes a method with a stream of requests and one response. */
export function clientStream<Req, Res>(options: MethodSpecOptions = {}): MethodSpec<Req, Res, true, false> {
  return { requestStream: true, responseStream: false, options };
}

/** Describes a method with a stream in each direction. */
export function bidiStream<Req, Res>(options: MethodSpecOptions = {}): MethodSpec<Req, Res, true, true> {
  return { requestStream: true, responseStream: true, options };
}

const namePattern = /^[A-Za-z_][\w.]{0,254}$/;

/**
 * Defines a service whose messages are plain values: null, undefined, booleans, numbers, bigints of 64 bits,
 * strings, `Uint8Array`, `Date`, arrays and plain objects of them. `name` is the full name of the service,
 * such as `chat.Room`. Clients and handlers use the given method names. Throws for an invalid name.
 */
export function defineService<const S extends Specs>({
  name: fullName,
  methods,
}: {
  readonly name: string;
  readonly methods: S;
}): DefinedService<S> {
  const checked = (name: string): string => {
    if (namePattern.test(name)) return name;
    throw new TypeError(`defineService: ${JSON.stringify(name)} is no name; use letters, digits and _`);
  };
  const define = (
    name: string,
    { requestStream, responseStream, options }: Specs[string],
  ): MethodDefinition => {
    const path = `${checked(fullName)}/${checked(name)}`;
    return new Method({
      fullName: path,
      id: methodId(path, 'MSGPACK'),
      input: msgpackType(`${path} request`),
      requestStream,
      output: msgpackType(`${path} response`),
      responseStream,
      options: { ...options, preferredCodec: 'MSGPACK' },
    });
  };
  const defined = Object.fromEntries(
    Object.entries(methods).map(([name, spec]) => [name, define(name, spec)]),
  );
  const name = checked(fullName).slice(fullName.lastIndexOf('.') + 1);
  return { name, fullName, methods: defined } as unknown as DefinedService<S>;
}
