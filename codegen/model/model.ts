/**
 * The model between parser and output: the meaning of a set of .proto files, with all names resolved and
 * chosen, and without descriptors. build.ts makes it, and all files in emit/ read it.
 */

import type { Scalar } from '../../runtime/codec/types.ts';

export type { Scalar };

/** The name of a class of typed arrays, without the suffix `Array`. */
export type ArrayName =
  | 'Int8'
  | 'Int16'
  | 'Uint16'
  | 'Int32'
  | 'Uint32'
  | 'BigInt64'
  | 'BigUint64'
  | 'Float32'
  | 'Float64';

export interface File {
  /** Import path, for example `kv/v1/kv.proto`. */
  readonly path: string;
  readonly package: string;
  /** Whether the file is part of the runtime package. No output is emitted for such a file. */
  readonly bundled: boolean;
  /** Other files to which it refers by their types, or which it re-exports. */
  readonly uses: Set<File>;
  /** The imported files, in the order of the import statements. */
  readonly dependencies: readonly File[];
  readonly publicImports: readonly File[];
  /** Name of the const with the file's descriptor. */
  readonly descriptor: string;
  /** The encoding of the descriptor. */
  readonly bytes: Uint8Array;
  /** Nested messages follow the message that contains them. */
  readonly messages: Message[];
  readonly enums: Enum[];
  readonly services: Service[];
  readonly extensions: Extension[];
}

/** The documentation of an element. */
export interface Documented {
  readonly comment: string;
  readonly deprecated: boolean;
}

export interface Message extends Documented {
  readonly kind: 'message';
  readonly file: File;
  /** The full name, such as `kv.v1.Order.Item`. */
  readonly fullName: string;
  /** The name in TypeScript. */
  readonly identifier: string;
  readonly init: string;
  /** The fields, ordered by field number. */
  readonly fields: Field[];
  readonly oneofs: Oneof[];
  /** Whether unknown fields are kept: on request, and for messages with extension ranges. */
  readonly keepsUnknown: boolean;
  /** Names that the message's fields must not have. */
  readonly reserved: readonly string[];
  readonly custom: Plain | undefined;
  /** Name of the const with custom options of the message and its fields; empty when they have none. */
  options: string;
  /** Name of the const with explicit defaults; empty when the message has none. */
  defaults: string;
}

export interface Enum extends Documented {
  readonly kind: 'enum';
  readonly file: File;
  readonly fullName: string;
  readonly identifier: string;
  /** Name of the const with the value names by number. */
  readonly names: string;
  /** Whether the enum allows only the declared numbers, which matters for text format. */
  readonly closed: boolean;
  readonly values: readonly (Documented & { readonly name: string; readonly number: number })[];
}

/** The TypeScript type of a 64-bit integer. */
export type Int64 = 'bigint' | 'string' | 'number';

export type FieldType =
  | { readonly kind: 'scalar'; readonly scalar: Scalar; readonly jstype: Int64 }
  | Message
  | Enum;

export interface Field extends Documented {
  /** The name in the .proto. */
  readonly name: string;
  /** Property name in TypeScript. */
  readonly key: string;
  /** Name in JSON. */
  readonly jsonName: string;
  readonly fullName: string;
  readonly number: number;
  readonly type: FieldType;
  /**
   * implicit: an absent field equals its default, which is not sent. optional: absence differs from the
   * default (as for all singular messages). required: absence is an error.
   */
  readonly presence: 'implicit' | 'optional' | 'required' | 'repeated' | 'map' | 'oneof';
  /** Whether a repeated field of numbers is written in the packed form. Both forms are read. */
  readonly packed: boolean;
  /** Whether the field is a message that is encoded as a group. */
  readonly delimited: boolean;
  /** Whether the field is a string that must be valid UTF-8. */
  readonly utf8: boolean;
  /** Source text of an explicit default; undefined when the field has none. */
  readonly default: string | undefined;
  /** The typed array of a `bytes` field (`Float32` for a Float32Array); undefined for a Uint8Array. */
  readonly array: ArrayName | undefined;
  /** Size from which on a value is sent out of line, if the .proto sets such a size. */
  readonly bulkThreshold: number | undefined;
  readonly custom: Plain | undefined;
  readonly mapKey: Scalar | undefined;
  readonly oneof: Oneof | undefined;
}

export interface Oneof extends Documented {
  /** Property name in TypeScript, chosen together with those of the message's fields. */
  key: string;
  readonly fullName: string;
  /** The fields of the oneof, ordered by field number. */
  readonly fields: Field[];
}

export interface Service extends Documented {
  readonly name: string;
  readonly fullName: string;
  /** The name of the definition in TypeScript. */
  readonly definition: string;
  readonly client: string;
  readonly handlers: string;
  readonly methods: readonly Method[];
  readonly custom: Plain | undefined;
}

export interface Method extends Documented {
  readonly name: string;
  /** Property name in TypeScript. */
  readonly key: string;
  /** The path, such as `kv.v1.Kv/Get`. */
  readonly path: string;
  readonly id: number;
  /** The method's id in the encoding of `options.preferredCodec`. */
  readonly preferredId: number | undefined;
  readonly request: Message;
  readonly response: Message;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  readonly options: MethodOptions;
}

export interface MethodOptions {
  readonly idempotencyLevel: 'IDEMPOTENT' | 'NO_SIDE_EFFECTS' | undefined;
  readonly oneWay: boolean;
  readonly expectedResponseBytes: number | undefined;
  readonly preferredCodec: 'MSGPACK' | undefined;
  readonly custom: Plain | undefined;
}

/** A field of another message that is declared outside of that message. */
export interface Extension extends Documented {
  readonly identifier: string;
  readonly fullName: string;
  readonly extendee: Message;
  /** A message whose only field, with the key `value`, is the extension. */
  readonly message: Message;
}

/** Custom options, in the form of protobuf's JSON. */
export type Plain = string | number | boolean | null | readonly Plain[] | { readonly [key: string]: Plain };
