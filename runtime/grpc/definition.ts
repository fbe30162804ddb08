/** A generated service in the form that grpc-js and nice-grpc take, for their servers and clients. Nothing of either is imported. */
import type { MethodDefinition, ServiceDefinition } from '../codec/types.ts';

/** One method: grpc-js calls this a MethodDefinition, and nice-grpc takes the same. */
export interface GrpcMethod<
  Req,
  ReqInit,
  Res,
  ResInit,
  RequestStream extends boolean,
  ResponseStream extends boolean,
> {
  /** `/pkg.Service/GetUser` */
  path: string;
  requestStream: RequestStream;
  responseStream: ResponseStream;
  requestSerialize(value: ReqInit): Buffer;
  requestDeserialize(bytes: Uint8Array): Req;
  responseSerialize(value: ResInit): Buffer;
  responseDeserialize(bytes: Uint8Array): Res;
  originalName: string;
  options: { idempotencyLevel?: 'IDEMPOTENT' | 'NO_SIDE_EFFECTS' };
}

type ToGrpc<M> =
  M extends MethodDefinition<infer Req, infer ReqInit, infer Res, infer ResInit>
    ? GrpcMethod<Req, ReqInit, Res, ResInit, M['requestStream'], M['responseStream']>
    : never;

export type GrpcDefinition<D extends ServiceDefinition> = {
  [K in keyof D['methods']]: ToGrpc<D['methods'][K]>;
};

function buffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function toGrpc(
  name: string,
  method: MethodDefinition,
): GrpcMethod<unknown, unknown, unknown, unknown, boolean, boolean> {
  const { path, requestType, requestStream, responseType, responseStream, options } = method;
  const { idempotencyLevel } = options;
  return {
    path: `/${path}`,
    requestStream,
    responseStream,
    requestSerialize: (value) => buffer(requestType.encode(value)),
    requestDeserialize: (bytes) => requestType.decode(bytes),
    responseSerialize: (value) => buffer(responseType.encode(value)),
    responseDeserialize: (bytes) => responseType.decode(bytes),
    originalName: name,
    options: idempotencyLevel === undefined ? {} : { idempotencyLevel },
  };
}

/** `definition` for grpc-js (`makeGenericClientConstructor`, `server.addService`) and nice-grpc (`createClient`, `server.add`). */
export function toGrpcDefinition<D extends ServiceDefinition>(definition: D): GrpcDefinition<D> {
  const methods = Object.entries(definition.methods).map(([name, method]) => [name, toGrpc(name, method)]);
  return Object.fromEntries(methods) as GrpcDefinition<D>;
}
