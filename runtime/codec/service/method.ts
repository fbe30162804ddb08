/**
 * A method of a generated service. It has the properties that this package needs and the forms that grpc-js
 * and nice-grpc expect, so that the definitions also work with those libraries. The method is created when a
 * generated module is loaded; each foreign form is created when it is first read. It imports nothing from
 * either library.
 */

import type { MessageType, MethodDefinition, MethodForm, MethodOptions } from '../types.ts';
import { encoded } from './encoded-ahead.ts';

/**
 * A message type as ts-proto generates it. `encode` takes the result of `fromPartial`, from which nice-grpc
 * derives the type of messages.
 */
export interface TsProtoMessageType<T, Init> {
  encode(message: T): { finish(): Uint8Array };
  decode(bytes: Uint8Array): T;
  fromPartial(message: Init): T;
}

/** Node's Buffer. Where Node's types are not installed, TypeScript does not know it. */
type NodeBuffer = typeof globalThis extends { Buffer: { alloc(size: number): infer B } } ? B : Uint8Array;

function tsProto<T, Init>(type: MessageType<T, Init>): TsProtoMessageType<T, Init> {
  return {
    encode: (message) => {
      const bytes = encoded(type, message as unknown as Init);
      return { finish: () => bytes };
    },
    decode: (bytes) => type.decode(bytes),
    fromPartial: (message) => type.create(message),
  };
}

function serializer<Init>(type: MessageType<unknown, Init>): (message: Init) => NodeBuffer {
  return (message) => {
    const { buffer, byteOffset, byteLength } = encoded(type, message);
    return Buffer.from(buffer, byteOffset, byteLength) as NodeBuffer;
  };
}

function deserializer<T>(type: MessageType<T, never>): (bytes: Uint8Array) => T {
  return (bytes) => type.decode(bytes);
}

/** The properties of a method in generated code. */
interface Declared<
  Req,
  ReqInit,
  Res,
  ResInit,
  RequestStream extends boolean,
  ResponseStream extends boolean,
  Options extends MethodOptions,
> {
  readonly fullName: string;
  readonly id: number;
  readonly input: MessageType<Req, ReqInit>;
  readonly requestStream: RequestStream;
  readonly output: MessageType<Res, ResInit>;
  readonly responseStream: ResponseStream;
  readonly options: Options;
  readonly preferred?: MethodForm<Req, ReqInit, Res, ResInit>;
}

/**
 * A service with such methods is a service definition for nice-grpc, and its `methods` are a service
 * definition for grpc-js.
 */
export class Method<
  Req,
  ReqInit,
  Res,
  ResInit,
  RequestStream extends boolean,
  ResponseStream extends boolean,
  Options extends MethodOptions,
> implements MethodDefinition<Req, ReqInit, Res, ResInit>
{
  readonly fullName: string;
  readonly id: number;
  readonly input: MessageType<Req, ReqInit>;
  readonly requestStream: RequestStream;
  readonly output: MessageType<Res, ResInit>;
  readonly responseStream: ResponseStream;
  /**
   * The type is the intersection of the declared options and of all possible options. Without the second
   * part, TypeScript would not accept it as the options of gRPC.
   */
  readonly options: Options & MethodOptions;
  readonly preferred: MethodForm<Req, ReqInit, Res, ResInit> | undefined;

  constructor(declared: Declared<Req, ReqInit, Res, ResInit, RequestStream, ResponseStream, Options>) {
    this.fullName = declared.fullName;
    this.id = declared.id;
    this.input = declared.input;
    this.requestStream = declared.requestStream;
    this.output = declared.output;
    this.responseStream = declared.responseStream;
    this.options = declared.options;
    this.preferred = declared.preferred;
  }

  /**
   * The method's name, such as `GetUser`. It is a getter rather than an own property, because grpc-js copies
   * own properties to functions, whose `name` cannot be assigned.
   */
  get name(): string {
    return this.fullName.slice(this.fullName.indexOf('/') + 1);
  }

  /** The path in HTTP/2, such as `/pkg.Service/GetUser`. */
  get path(): string {
    return `/${this.fullName}`;
  }

  get requestType(): TsProtoMessageType<Req, ReqInit> {
    return tsProto(this.input);
  }

  get responseType(): TsProtoMessageType<Res, ResInit> {
    return tsProto(this.output);
  }

  get requestSerialize(): (message: ReqInit) => NodeBuffer {
    return serializer(this.input);
  }

  get requestDeserialize(): (bytes: Uint8Array) => Req {
    return deserializer(this.input);
  }

  get responseSerialize(): (message: ResInit) => NodeBuffer {
    return serializer(this.output);
  }

  get responseDeserialize(): (bytes: Uint8Array) => Res {
    return deserializer(this.output);
  }
}
