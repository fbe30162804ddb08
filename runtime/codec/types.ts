/**
 * The types of generated code: message types, service definitions, and the writer and reader (source) that
 * their codecs use. Generated files import them as types, and so does runtime/boundary, which encodes into
 * send slots and decodes from receive memory.
 */
import type { FileDescriptor } from './file-descriptor.ts';
import type { Source } from './memory/source.ts';
import type { Writer } from './memory/writer.ts';
import type { ArrayName } from './typed-array.ts';

/**
 * The codec of one message. In generated code it is a const with the message's name. `T` is the result of
 * decode: all fields have their defaults, and optional fields may be absent. `Init` is the argument of
 * encode, in which every key is optional.
 */
export interface MessageType<T, Init = T> {
  /** Full name without a leading dot, for example `kv.v1.GetRequest`. */
  readonly typeName: string;
  /** Returns a message in which the fields of `init` are set and all other fields have their defaults. */
  create(init?: Init): T;
  /**
   * Returns an upper bound, in bytes, of the memory that `encodeTo` will write. `bytes` values of at least
   * `writer.gatherBytes` are not included. Their lengths are added to `writer.gathered` for the first
   * `outOfLineMax` values; further values count as memory. The bound is cheap: only long strings are
   * measured, and 3 × length is assumed for other strings. The function need not refuse invalid messages. Its
   * result is then meaningless, and `encodeTo` throws. Call `writer.reset()` before it; `depth` is for
   * generated code.
   */
  bound(message: Init, writer: Writer, depth?: number): number;
  /**
   * Writes the protobuf encoding at `at` and returns the end. Writes nothing at or behind `limit` (default:
   * the end of the writer's memory). Sets `writer.full` if there may not be enough room, by the rules of
   * `bound`. All written bytes are meaningless then. `bytes` values of at least `writer.gatherBytes` are left
   * out and recorded in `writer` (position and value), so that memory · value · memory … is plain protobuf.
   * Throws CodecError for values that do not fit their field, and for nesting over 100. Call `writer.reset()`
   * before it; `depth` and `field` (for errors) are for generated code.
   */
  encodeTo(message: Init, writer: Writer, at: number, limit?: number, depth?: number, field?: string): number;
  /**
   * Decodes the bytes [at, end) of the source, which lie in its memory. Throws CodecError for malformed
   * bytes. `depth` and `into` (a message to merge into) are for generated code.
   */
  decodeFrom(source: Source, at: number, end: number, depth?: number, into?: T): T;
  /**
   * Returns the fields in the short form of generated code, for JSON, equality and similar code; `fieldsOf`
   * returns them in full.
   */
  fields(): readonly FieldEntry[];
  /** Names that the .proto reserves, separated by spaces. The text format skips fields with these names. */
  readonly reserved?: string | undefined;
  /** Returns the encoding in memory of its own. */
  encode(message: Init): Uint8Array;
  /**
   * Decodes `bytes`; `bytes` fields are copies. Throws CodecError for malformed bytes, and TypeError for
   * anything but a Uint8Array, such as an ArrayBuffer.
   */
  decode(bytes: Uint8Array): T;
}

export type Scalar =
  | 'double'
  | 'float'
  | 'int32'
  | 'uint32'
  | 'sint32'
  | 'fixed32'
  | 'sfixed32'
  | 'int64'
  | 'uint64'
  | 'sint64'
  | 'fixed64'
  | 'sfixed64'
  | 'bool'
  | 'string'
  | 'bytes';

/** The generated const of an enum: numbers by name. */
export type EnumObject = { readonly [name: string]: number };

// biome-ignore lint/suspicious/noExplicitAny: a table refers to messages of any type
type AnyType = MessageType<any, any>;

/**
 * implicit: an absent field equals its default. optional: absence differs from the default. oneof: the field
 * is one of several.
 */
export type Presence = 'implicit' | 'optional' | 'required' | 'repeated' | 'map' | 'oneof';

/**
 * A field as generated code lists it: its name in the .proto; its type (for maps, the type of the values);
 * its presence unless that is implicit (for messages, optional); the key type of a map or the property of a
 * oneof; and properties that do not follow from the name.
 */
export type FieldEntry = readonly [
  name: string,
  type: Scalar | EnumObject | AnyType,
  presence?: Presence | undefined,
  of?: string | undefined,
  apart?: {
    readonly key?: string;
    readonly jsonName?: string;
    readonly jstype?: 'string' | 'number';
    readonly group?: true;
    readonly closed?: true;
    readonly array?: ArrayName;
  },
];

/** Distinguishes a message type from other exports of a generated module. */
export function isMessageType(value: unknown): value is MessageType<object> {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as { decodeFrom?: unknown }).decodeFrom === 'function'
  );
}

export interface MethodOptions {
  readonly idempotencyLevel?: 'IDEMPOTENT' | 'NO_SIDE_EFFECTS';
  readonly deprecated?: boolean;
  /** `option (rdma_rpc.one_way) = true`: the caller gets no response. */
  readonly oneWay?: boolean;
  /** `option (rdma_rpc.expected_response_bytes)`: the approximate size of responses, in bytes. */
  readonly expectedResponseBytes?: number;
  /**
   * `option (rdma_rpc.preferred_codec)` of the method or `default_codec` of the service, when it is not
   * protobuf.
   */
  readonly preferredCodec?: 'MSGPACK';
  /** All other custom options by full name, in the form of protobuf's JSON. */
  readonly custom?: CustomOptions;
}

/** The encoding of a method's messages, and the id that identifies this encoding. */
export interface MethodForm<Req = unknown, ReqInit = Req, Res = unknown, ResInit = Res> {
  /**
   * 32-bit FNV-1a hash, unsigned and at least 256: of `fullName` for protobuf, of `fullName` and `+msgpack`
   * for MessagePack.
   */
  readonly id: number;
  /** Type of requests. */
  readonly input: MessageType<Req, ReqInit>;
  /** Type of responses. */
  readonly output: MessageType<Res, ResInit>;
}

/**
 * The properties of a method that clients and servers use. Methods of generated services (`Method`) also have
 * the forms of grpc-js and nice-grpc.
 */
export interface MethodDefinition<Req = unknown, ReqInit = Req, Res = unknown, ResInit = Res>
  extends MethodForm<Req, ReqInit, Res, ResInit> {
  /** The name in the .proto: `GetUser`. */
  readonly name: string;
  /** The full name, such as `pkg.Service/GetUser`. */
  readonly fullName: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  /**
   * The encoding that clients of this package use, when it differs from the method's own
   * (`options.preferredCodec`). Servers accept both.
   */
  readonly preferred?: MethodForm<Req, ReqInit, Res, ResInit> | undefined;
  readonly options: MethodOptions;
}

/** Custom options by their full name (`google.api.http`), as plain data in the form of protobuf's JSON. */
export interface CustomOptions {
  readonly [name: string]: unknown;
}

/** The keys of `methods` are the camelCase names that clients and handlers have. */
export interface ServiceDefinition {
  readonly name: string;
  readonly fullName: string;
  /** The file that declares the service, for reflection. It is absent in hand-written definitions. */
  readonly file?: FileDescriptor;
  /** Custom options of the service. */
  readonly custom?: CustomOptions;
  // biome-ignore lint/suspicious/noExplicitAny: a definition of any message types; clients and handlers get theirs by inference
  readonly methods: Readonly<Record<string, MethodDefinition<any, any, any, any>>>;
}
