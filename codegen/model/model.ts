/**
 * The model between parser and output: the meaning of a set of .proto files, with all names resolved and
 * chosen, and without descriptors. Built by build.ts, read by everything in emit/.
 */

import type { Scalar } from '../../runtime/codec/types.ts';

export type { Scalar };

/** A class of typed arrays, without the suffix `Array`. */
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
  /** Import path: `kv/v1/kv.proto`. */
  readonly path: string;
  readonly package: string;
  /** Part of the runtime package; no output is emitted for it. */
  readonly bundled: boolean;
  /** Other files whose types it refers to or re-exports. */
  readonly uses: Set<File>;
  /** In the order of the import statements. */
  readonly dependencies: readonly File[];
  readonly publicImports: readonly File[];
  /** The const with the file's descriptor. */
  readonly descriptor: string;
  /** Its encoding. */
  readonly bytes: Uint8Array;
  /** Nested messages follow the message that contains them. */
  readonly messages: Message[];
  readonly enums: Enum[];
  readonly services: Service[];
  readonly extensions: Extension[];
}

/** Documentation of an element. */
export interface Documented {
  readonly comment: string;
  readonly deprecated: boolean;
}

export interface Message extends Documented {
  readonly kind: 'message';
  readonly file: File;
  /** `kv.v1.Order.Item` */
  readonly fullName: string;
  /** Names in TypeScript. */
  readonly identifier: string;
  readonly init: string;
  /** Ordered by field number. */
  readonly fields: Field[];
  readonly oneofs: Oneof[];
  /** Unknown fields are kept: on request, and for messages with extension ranges. */
  readonly keepsUnknown: boolean;
  /** Names that no field may have. */
  readonly reserved: readonly string[];
  readonly custom: Plain | undefined;
  /** The const with custom options of the message and its fields; empty for none. */
  options: string;
  /** The const with explicit defaults; empty for none. */
  defaults: string;
}

export interface Enum extends Documented {
  readonly kind: 'enum';
  readonly file: File;
  readonly fullName: string;
  readonly identifier: string;
  /** The const with the names by number. */
  readonly names: string;
  /** Allows only the declared numbers; matters for text format. */
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
  /** How a repeated field of numbers is written. Both forms are read. */
  readonly packed: boolean;
  /** A message that is encoded as a group. */
  readonly delimited: boolean;
  /** A string that must be valid UTF-8. */
  readonly utf8: boolean;
  /** Source text of an explicit default. */
  readonly default: string | undefined;
  /** The typed array of a `bytes` field (`Float32` for a Float32Array); undefined for a Uint8Array. */
  readonly array: ArrayName | undefined;
  /** Size from which on a value is sent out of line, if the .proto sets it. */
  readonly bulkThreshold: number | undefined;
  readonly custom: Plain | undefined;
  readonly mapKey: Scalar | undefined;
  readonly oneof: Oneof | undefined;
}

export interface Oneof extends Documented {
  /** Property name in TypeScript, chosen together with those of the message's fields. */
  key: string;
  readonly fullName: string;
  /** Ordered by field number. */
  readonly fields: Field[];
}

export interface Service extends Documented {
  readonly name: string;
  readonly fullName: string;
  /** Names in TypeScript. */
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
  /** `kv.v1.Kv/Get` */
  readonly path: string;
  readonly id: number;
  /** Its id in `options.preferredCodec`. */
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

/** A field of another message, declared outside of it. */
export interface Extension extends Documented {
  readonly identifier: string;
  readonly fullName: string;
  readonly extendee: Message;
  /** Its only field, with the key `value`, is the extension. */
  readonly message: Message;
}

/** Custom options, in the form of protobuf's JSON. */
export type Plain = string | number | boolean | null | readonly Plain[] | { readonly [key: string]: Plain };
